package filestore

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// frame is what one append adds to a log. Frames are replayed in order, which is the same for
// all processes.
type frame struct {
	kind byte
	idle bool // nobody uses the lock
	// id is random and identifies the version that the frame makes of the record, and base the
	// version that it replaces, or 0 for none. A frame with another base has no effect.
	base, id uint64
	floor    uint64 // of tokens when it was written; see log.floor
	number   uint64 // of the version: one more than that of the base, or than the floor without one
	written  int64  // by the clock since boot
	key      string
	value    []byte
}

// The kinds of frames.
const (
	header = 'h' // the first one of a log: key is the id of the boot
	write  = 'w'
	seal   = 's' // the log goes on in the next file: later frames have no effect
	wish   = 'l' // its process keeps losing to others when it writes the record
)

// A frame in bytes: a mark, the length of its body and the checksum of that, 4 bytes each, then the body.
const (
	frameMark = 0x4c65a5e1
	frameHead = 12
	bodyHead  = 2 + 5*8 + 2
	maxBody   = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendTo appends the frame to b. salt is that of the log.
func (f *frame) appendTo(b []byte, salt uint32) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = le.AppendUint32(b, frameMark)
	b = le.AppendUint32(b, uint32(bodyHead+len(f.key)+len(f.value)))
	b = le.AppendUint32(b, 0)
	idle := byte(0)
	if f.idle {
		idle = 1
	}
	b = append(b, f.kind, idle)
	b = le.AppendUint64(b, f.base)
	b = le.AppendUint64(b, f.id)
	b = le.AppendUint64(b, f.floor)
	b = le.AppendUint64(b, f.number)
	b = le.AppendUint64(b, uint64(f.written))
	b = le.AppendUint16(b, uint16(len(f.key)))
	b = append(b, f.key...)
	b = append(b, f.value...)
	le.PutUint32(b[start+8:], crc32.Update(salt, castagnoli, b[start+frameHead:]))
	return b
}

// errFrame is what parse says of bytes that are no whole frame.
var errFrame = errors.New("it is no frame")

// parse returns the frame at the start of b and its length. key and value are parts of b.
func parse(b []byte, salt uint32) (f frame, n int, err error) {
	le := binary.LittleEndian
	if len(b) < frameHead+bodyHead || le.Uint32(b) != frameMark {
		return f, 0, errFrame
	}
	size := int(le.Uint32(b[4:]))
	if size < bodyHead || size > maxBody || size > len(b)-frameHead {
		return f, 0, errFrame
	}
	body := b[frameHead : frameHead+size]
	if crc32.Update(salt, castagnoli, body) != le.Uint32(b[8:]) {
		return f, 0, errFrame
	}
	keyLen := int(le.Uint16(body[42:]))
	if keyLen > size-bodyHead {
		return f, 0, errFrame
	}
	f = frame{
		kind: body[0], idle: body[1] != 0, base: le.Uint64(body[2:]), id: le.Uint64(body[10:]), floor: le.Uint64(body[18:]),
		number: le.Uint64(body[26:]), written: int64(le.Uint64(body[34:])), key: string(body[bodyHead : bodyHead+keyLen]), value: body[bodyHead+keyLen:],
	}
	return f, frameHead + size, nil
}

// A log begins with the name of its format and a random salt, which all checksums depend on: no
// bytes of a caller's can look like a frame.
const (
	logMagic = "leasehold locks\n"
	logHead  = len(logMagic) + 8
)
