package simredis

import (
	"strconv"
	"strings"
)

// reply is the reply to a command, before it is encoded for a connection.
type reply struct {
	kind byte // + - : $ * % > and _ for null
	text string
	n    int64
	list []reply
}

var (
	okReply   = reply{kind: '+', text: "OK"}
	nullReply = reply{kind: '_'}
)

func number(n int64) reply      { return reply{kind: ':', n: n} }
func bulk(s string) reply       { return reply{kind: '$', text: s} }
func failure(s string) reply    { return reply{kind: '-', text: s} }
func array(list ...reply) reply { return reply{kind: '*', list: list} }

func bulks(words []string) reply {
	r := reply{kind: '*'}
	for _, w := range words {
		r.list = append(r.list, bulk(w))
	}
	return r
}

const (
	wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	syntax    = "ERR syntax error"
	notNumber = "ERR value is not an integer or out of range"
)

// encode appends the reply in version 2 or 3 of the protocol.
func (r reply) encode(b []byte, version int) []byte {
	switch r.kind {
	case '_':
		if version < 3 {
			return append(b, "$-1\r\n"...)
		}
		return append(b, "_\r\n"...)
	case ':':
		b = strconv.AppendInt(append(b, ':'), r.n, 10)
		return append(b, "\r\n"...)
	case '$':
		b = strconv.AppendInt(append(b, '$'), int64(len(r.text)), 10)
		return append(append(append(b, "\r\n"...), r.text...), "\r\n"...)
	case '+', '-':
		return append(append(append(b, r.kind), strings.NewReplacer("\r", " ", "\n", " ").Replace(r.text)...), "\r\n"...)
	}
	kind, n := r.kind, len(r.list)
	switch {
	case kind == '%' && version >= 3:
		n /= 2
	case kind == '%' || kind == '>' && version < 3:
		kind = '*'
	}
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	b = append(b, "\r\n"...)
	for _, e := range r.list {
		b = e.encode(b, version)
	}
	return b
}
