package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/leasehold-dev/leasehold/fence"
)

// Most requests and answers are one flat object of short texts, whole numbers and truth values.
// Those are written and read here, which costs a fraction of what package encoding/json does, and
// no more stack than a wait needs. Whatever is not as plain as that is left to encoding/json.

// value is the value of a member of a plain object.
type value struct {
	text   []byte // what is between the quotes, or the digits, or the word
	quoted bool
	escape bool // text has escapes
}

// plain calls set with each member of b. It returns false if b is no plain object, or set returns
// false: then nothing that was set counts.
func plain(b []byte, set func(key []byte, v value) bool) bool {
	b = bytes.Trim(b, " \t\r\n") // the white space of JSON
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		return false
	}
	b = b[1 : len(b)-1]
	for first := true; len(b) > 0 || !first; first = false {
		if !first {
			if len(b) == 0 {
				return true
			}
			if b[0] != ',' {
				return false
			}
			b = bytes.TrimLeft(b[1:], " ")
		}
		var key, v value
		var ok bool
		if key, b, ok = next(b); !ok || !key.quoted || key.escape || len(b) == 0 || b[0] != ':' {
			return false
		}
		if v, b, ok = next(bytes.TrimLeft(b[1:], " ")); !ok || !set(key.text, v) {
			return false
		}
	}
	return true
}

// next returns the value at the beginning of b, and what follows it.
func next(b []byte) (v value, rest []byte, ok bool) {
	if len(b) > 0 && b[0] == '"' {
		for i := 1; i < len(b); i++ {
			switch c := b[i]; {
			case c == '"':
				return value{b[1:i], true, v.escape}, b[i+1:], true
			case c == '\\':
				if i++; i == len(b) || b[i] != '"' && b[i] != '\\' {
					return v, nil, false
				}
				v.escape = true
			case c < ' ' || c > '~':
				return v, nil, false
			}
		}
		return v, nil, false
	}
	i := 0
	for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] >= 'a' && b[i] <= 'z' || b[i] == '-') {
		i++
	}
	return value{text: b[:i]}, b[i:], i > 0
}

// string sets s to a text.
func (v value) string(s *string) bool {
	if v.escape {
		text := make([]byte, 0, len(v.text))
		for i := 0; i < len(v.text); i++ {
			if v.text[i] == '\\' {
				i++
			}
			text = append(text, v.text[i])
		}
		*s = string(text)
	} else {
		*s = string(v.text)
	}
	return v.quoted
}

// mostPlain is less than what number reads, and no less than any time.
const mostPlain = 1e15

// number sets n to a whole number of at most 18 digits.
func (v value) number(n *int64) bool {
	if v.quoted || len(v.text) == 0 || len(v.text) > 18 || len(v.text) > 1 && v.text[0] == '0' {
		return false
	}
	*n = 0
	for _, c := range v.text {
		if c < '0' || c > '9' {
			return false
		}
		*n = *n*10 + int64(c-'0')
	}
	return true
}

func (v value) int(n *int) bool {
	var long int64
	ok := v.number(&long) && long <= 1<<31-1
	*n = int(long)
	return ok
}

// milliseconds sets m to a whole number of them.
func (v value) milliseconds(m *Milliseconds) bool {
	var n int64
	ok := v.number(&n)
	*m = Milliseconds(n)
	return ok
}

func (v value) bool(b *bool) bool {
	*b = string(v.text) == "true"
	return !v.quoted && (*b || string(v.text) == "false")
}

// ReadPlain sets q to b, if b is plain. Otherwise it returns false, and q is as it was.
func (q *Request) ReadPlain(b []byte) bool {
	read := *q
	if !plain(b, read.set) {
		return false
	}
	*q = read
	return true
}

func (q *Request) set(key []byte, v value) bool {
	switch string(key) {
	case "owner":
		return v.string(&q.Owner)
	case "ttl_ms":
		q.TTL = new(Milliseconds)
		return v.milliseconds(q.TTL)
	case "wait_ms":
		q.Wait = new(Milliseconds)
		return v.milliseconds(q.Wait)
	case "kind":
		return v.string(&q.Kind)
	case "permits":
		return v.number(&q.Permits)
	case "weight":
		return v.number(&q.Weight)
	case "purpose":
		return v.string(&q.Purpose)
	case "host":
		return v.string(&q.Host)
	case "pid":
		return v.int(&q.PID)
	case "attempt":
		return v.string(&q.Attempt)
	case "meta":
		q.Meta = new(string)
		return v.string(q.Meta)
	case "renewed":
		return v.bool(&q.Renewed)
	case "undo":
		return v.bool(&q.Undo)
	case "call":
		return v.string(&q.Call)
	case "again":
		return v.int(&q.Again)
	case "slots":
		return v.string(&q.Slots)
	case "require":
		return v.string(&q.Require)
	case "keep":
		return v.bool(&q.Keep)
	}
	return false
}

// ReadPlain sets a to b, if b is plain. Otherwise it returns false, and a is as it was.
func (a *Ask) ReadPlain(b []byte) bool {
	read := *a
	ok := plain(b, func(key []byte, v value) bool {
		switch string(key) {
		case "do":
			return v.string(&read.Do)
		case "name":
			return v.string(&read.Name)
		}
		return read.Request.set(key, v)
	})
	if ok {
		*a = read
	}
	return ok
}

// ReadPlain sets r to b, if b is plain. Otherwise it returns false, and r is as it was.
func (r *Reply) ReadPlain(b []byte) bool {
	var read Reply
	ok := plain(b, func(key []byte, v value) bool {
		if string(key) == "line" {
			return v.int(&read.Line)
		}
		if read.Grant == nil {
			read.Grant = new(Grant)
		}
		grant := read.Grant
		switch string(key) {
		case "name":
			return v.string(&grant.Name)
		case "owner":
			return v.string(&grant.Owner)
		case "token":
			var n int64
			ok := v.number(&n)
			grant.Token = fence.Token(n)
			return ok
		case "slot":
			return v.number(&grant.Slot)
		case "slots":
			return v.string(&grant.Slots)
		case "at_ms":
			return v.number((*int64)(&grant.At))
		case "valid_ms":
			return v.number((*int64)(&grant.Valid))
		case "repeated":
			return v.bool(&grant.Repeated)
		}
		return false
	})
	if ok {
		*r = read
	}
	return ok
}

// object appends members to an object.
type object struct{ b []byte }

func (o *object) key(key string) {
	if len(o.b) > 0 && o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), key...), `":`...)
}

func (o *object) number(key string, n int64) {
	o.key(key)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) string(key, s string) {
	o.key(key)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			text, _ := json.Marshal(s) // it knows how to escape the rest
			o.b = append(o.b, text...)
			return
		}
	}
	o.b = append(o.b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			o.b = append(o.b, '\\')
		}
		o.b = append(o.b, s[i])
	}
	o.b = append(o.b, '"')
}

// some appends the members that are not empty.
func (o *object) some(key, s string) {
	if s != "" {
		o.string(key, s)
	}
}

// AppendLine appends a as a line.
func (a *Ask) AppendLine(b []byte) []byte {
	q := a.Request
	rest := q // what is left to encoding/json
	rest.Owner, rest.TTL, rest.Attempt, rest.Meta, rest.Slots, rest.Call, rest.Again = "", nil, "", nil, "", "", 0
	if a.Base64 != "" || rest != (Request{}) || q.TTL == nil || *q.TTL < 0 || *q.TTL > mostPlain || *q.TTL != Milliseconds(int64(*q.TTL)) {
		line, err := json.Marshal(*a) // a copy, since what goes there is on the heap
		if err != nil {
			panic("leasehold: a request that is no JSON: " + err.Error()) // it has no values that can fail
		}
		return append(append(b, line...), '\n')
	}
	o := object{append(b, '{')}
	o.string("do", a.Do)
	o.string("name", a.Name)
	o.some("owner", q.Owner)
	o.number("ttl_ms", int64(*q.TTL))
	o.some("attempt", q.Attempt)
	if q.Meta != nil {
		o.string("meta", *q.Meta)
	}
	o.some("slots", q.Slots)
	o.some("call", q.Call)
	if q.Again != 0 {
		o.number("again", int64(q.Again))
	}
	return append(o.b, "}\n"...)
}

// AppendLine appends r as a line.
func (r Reply) AppendLine(b []byte) []byte {
	g := r.Grant
	if r.Problem != nil || g != nil && (g.Base64 != "" || g.Repeated) {
		line, err := json.Marshal(r)
		if err != nil {
			panic("leasehold: an answer that is no JSON: " + err.Error()) // it has no values that can fail
		}
		return append(append(b, line...), '\n')
	}
	o := object{append(b, '{')}
	o.number("line", int64(r.Line))
	if g != nil {
		o.string("name", g.Name)
		o.string("owner", g.Owner)
		o.number("token", int64(g.Token))
		o.number("slot", g.Slot)
		o.some("slots", g.Slots)
		o.number("at_ms", int64(g.At))
		o.number("valid_ms", int64(g.Valid))
	}
	return append(o.b, "}\n"...)
}
