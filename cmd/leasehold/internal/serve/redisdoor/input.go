package redisdoor

import (
	"bytes"
	"io"
	"sync"
)

// input is what a connection reads. Its buffer is small, since most connections are idle most of
// the time, unless the client sends many commands at once.
type input struct {
	r    io.Reader
	full bool // the last read filled the buffer
	buf  []byte
	at   int // what is before was taken
}

const (
	fewRead  = 512      // also the longest line. With 4 KB, 10,000 idle connections took 161 MB instead of 127
	muchRead = 16 << 10 // of a client that sends many commands at once
)

var buffers = sync.Pool{New: func() any { return new([muchRead]byte) }}

// buffered returns how many bytes were read and not taken.
func (in *input) buffered() int { return len(in.buf) - in.at }

// more reads more.
func (in *input) more() error {
	left := in.buf[in.at:]
	switch {
	case in.full && cap(in.buf) < muchRead:
		in.buf = append(buffers.Get().(*[muchRead]byte)[:0], left...)
	case !in.full && cap(in.buf) == muchRead && len(left) == 0:
		buffers.Put((*[muchRead]byte)(in.buf[:muchRead]))
		in.buf = nil
	default:
		in.buf = append(in.buf[:0], left...)
	}
	if in.at = 0; in.buf == nil {
		in.buf = make([]byte, 0, fewRead)
	}
	n, err := in.r.Read(in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	in.full = len(in.buf) == cap(in.buf)
	if n > 0 {
		return nil
	}
	return err
}

// some returns what was read and not taken, at most n bytes, after reading more if there is nothing.
func (in *input) some(n int) ([]byte, error) {
	for in.buffered() == 0 {
		if err := in.more(); err != nil {
			return nil, err
		}
	}
	return in.buf[in.at:min(len(in.buf), in.at+n)], nil
}

// line takes the next line, without its end.
func (in *input) line() ([]byte, error) {
	for seen := 0; ; {
		b := in.buf[in.at:]
		if n := bytes.IndexByte(b[seen:], '\n'); n >= 0 {
			n += seen
			in.at += n + 1
			return b[:n], nil
		}
		if seen = len(b); seen >= fewRead {
			return nil, protocolError("a length is too long")
		}
		if err := in.more(); err != nil {
			return nil, err
		}
	}
}
