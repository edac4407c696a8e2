// Package contend measures one lock that everybody wants: processes that do
// nothing but take it and give it back, and what becomes of their turns.
//
// Each process writes down when it asked, got the lock and began to give it back,
// by a clock that all processes of the machine share, and hands that over at the
// end. Put together it is the exact order of holders: how often the lock changed
// hands, how long that took, who was left out, and whether two ever held it at
// once.
package contend

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Hold is one turn with the lock, in nanoseconds of the machine's clock. Got is
// read after the lock was granted and Freed before it is given back, so that the
// lock was really held from the one to the other.
type Hold struct {
	Asked, Got, Freed int64
}

// Never is when a lock is given back that was not, yet.
const Never = math.MaxInt64

// Log is what one goroutine of one process has written down.
type Log struct {
	Process int
	Holds   []Hold // in order
	// Asking is since when it was waiting at the end; 0 if it was not.
	Asking int64
}

// holdSize is a Hold in bytes.
const holdSize = 24

func writeHolds(w io.Writer, holds []Hold) error {
	b := make([]byte, 0, holdSize*len(holds))
	for _, h := range holds {
		b = binary.LittleEndian.AppendUint64(b, uint64(h.Asked))
		b = binary.LittleEndian.AppendUint64(b, uint64(h.Got))
		b = binary.LittleEndian.AppendUint64(b, uint64(h.Freed))
	}
	_, err := w.Write(b)
	return err
}

func readHolds(r io.Reader, n int) ([]Hold, error) {
	b := make([]byte, holdSize*n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%d turns were promised: %w", n, err)
	}
	holds := make([]Hold, n)
	for i := range holds {
		at := b[holdSize*i:]
		holds[i] = Hold{
			Asked: int64(binary.LittleEndian.Uint64(at)), Got: int64(binary.LittleEndian.Uint64(at[8:])), Freed: int64(binary.LittleEndian.Uint64(at[16:])),
		}
	}
	return holds, nil
}
