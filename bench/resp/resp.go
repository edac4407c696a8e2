// Package resp is the part of the Redis protocol that is needed to write commands by
// hand and to read the replies.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// AppendCommand appends a command in wire format.
func AppendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	return AppendArgs(b, args...)
}

// AppendArgs appends arguments of a command.
func AppendArgs(b []byte, args ...string) []byte {
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
		b = append(b, "\r\n"...)
	}
	return b
}

// Kinds of replies.
const (
	Status = '+'
	Error  = '-'
	Number = ':'
	Text   = '$'
	Nil    = '_'
	List   = '*'
	Map    = '%'
	Push   = '>' // what the server was not asked for
)

// Reply is a reply of a server; of a List, a Map or a Push, only the last element.
// Bytes is valid until the next Read.
type Reply struct {
	Kind   byte
	Number int64
	Bytes  []byte
}

// Read reads one reply.
func Read(r *bufio.Reader) (Reply, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return Reply{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return Reply{}, fmt.Errorf("unreadable reply %q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case Status, Error:
		return Reply{Kind: kind, Bytes: rest}, nil
	case Number, Text:
		n, err := number(rest)
		if err != nil {
			return Reply{}, err
		}
		if kind == Number {
			return Reply{Kind: kind, Number: n}, nil
		}
		if n < 0 {
			return Reply{Kind: Nil}, nil
		}
		return text(r, int(n))
	case Nil:
		return Reply{Kind: Nil}, nil
	case List, Map, Push:
		n, err := number(rest)
		if kind == Map {
			n *= 2
		}
		var last Reply
		for ; err == nil && n > 0; n-- {
			last, err = Read(r)
		}
		last.Kind = kind
		return last, err
	}
	return Reply{}, fmt.Errorf("unreadable reply %q", line)
}

// ReadEach reads one reply as Read does. If it is a List, each element is passed to element.
func ReadEach(r *bufio.Reader, element func(Reply)) (Reply, error) {
	if head, err := r.Peek(1); err != nil || head[0] != List {
		return Read(r)
	}
	line, err := r.ReadSlice('\n')
	if err != nil {
		return Reply{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return Reply{}, fmt.Errorf("unreadable reply %q", line)
	}
	n, err := number(line[1 : len(line)-2])
	for ; err == nil && n > 0; n-- {
		var one Reply
		if one, err = Read(r); err == nil {
			element(one)
		}
	}
	return Reply{Kind: List}, err
}

// number parses a decimal without allocating a string.
func number(b []byte) (int64, error) {
	digits, sign := b, int64(1)
	if len(b) > 0 && b[0] == '-' {
		digits, sign = b[1:], -1
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, fmt.Errorf("unreadable number %q", b)
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("unreadable number %q", b)
		}
		n = n*10 + int64(c-'0')
	}
	return sign * n, nil
}

func text(r *bufio.Reader, n int) (Reply, error) {
	if n+2 <= r.Size() {
		b, err := r.Peek(n + 2)
		if err != nil {
			return Reply{}, err
		}
		_, err = r.Discard(n + 2)
		return Reply{Kind: Text, Bytes: b[:n]}, err
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return Reply{}, err
	}
	return Reply{Kind: Text, Bytes: b[:n]}, nil
}

// Ask sends one command over a connection of its own and returns the text of the reply.
// An error reply is returned as an error.
func Ask(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write(AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	reply, err := Read(bufio.NewReader(conn))
	switch {
	case err != nil:
		return "", err
	case reply.Kind == Error:
		return "", errors.New(string(reply.Bytes))
	case reply.Kind == Number:
		return strconv.FormatInt(reply.Number, 10), nil
	}
	return string(reply.Bytes), nil
}
