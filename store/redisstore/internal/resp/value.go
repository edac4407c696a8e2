package resp

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Value is one reply, an element of one, or a push.
type Value struct {
	Kind byte // one of + - : $ * and >, which is a push
	Null bool // of $ and *
	Text []byte
	Num  int64 // of :
	List []Value
}

// Number reads a number that was sent as a string, as SCAN sends its cursor.
func (v Value) Number() (uint64, bool) {
	if v.Kind != '$' {
		return 0, false
	}
	t, err := strconv.ParseUint(string(v.Text), 10, 64)
	return t, err == nil
}

// Clone returns a copy of v in memory of its own.
func (v Value) Clone() Value {
	v.Text = bytes.Clone(v.Text)
	if v.List != nil {
		list := make([]Value, len(v.List))
		for i := range list {
			list[i] = v.List[i].Clone()
		}
		v.List = list
	}
	return v
}

// String describes the value in one short line.
func (v Value) String() string {
	switch {
	case v.Null:
		return "nil"
	case v.Kind == ':':
		return strconv.FormatInt(v.Num, 10)
	case v.Kind == '*', v.Kind == '>':
		return excerpt.Of(fmt.Sprint(v.List))
	}
	return excerpt.Of(strconv.Quote(string(v.Text)))
}

// IsInvalidation reports whether v is a push about tracked keys.
func (v Value) IsInvalidation() bool {
	return v.Kind == '>' && len(v.List) == 2 && string(v.List[0].Text) == "invalidate"
}

// IsPush reports whether v is a push about a channel, or about the loss of one.
func (v Value) IsPush() bool {
	if v.Kind != '>' || len(v.List) != 3 {
		return false
	}
	kind := string(v.List[0].Text)
	return kind == "message" || kind == "smessage" || kind == "sunsubscribe"
}

// Unexpected is the error for a reply that is not one of those that the command can have.
func Unexpected(v Value) error { return fmt.Errorf("invalid answer: %.80s", v) }
