// Package contend measures one contended lock: processes do nothing but take it and
// release it.
//
// Each process records when it asked for the lock, got it and began to release it, by a
// clock that all processes of the machine share. Together the records give the exact
// order of holders: how often the lock changed hands, how long that took, which
// processes starved, and whether two ever held it at once.
package contend

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Hold is one turn with the lock, in nanoseconds of the machine's clock. Got is read
// after the lock was granted and Freed before it is released, so the lock was really
// held between the two.
type Hold struct {
	Asked, Got, Freed int64
}

// Never is the Freed of a turn that has not ended.
const Never = math.MaxInt64

// Log is the record of one goroutine of one process.
type Log struct {
	Process int
	Holds   []Hold // in order
	// Asking is since when the goroutine was waiting at the end; 0 if it was not.
	Asking int64
}

// holdSize is the size of a Hold in bytes.
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
