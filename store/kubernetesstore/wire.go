package kubernetesstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"
)

// message is an encoded message of Protocol Buffers. Fields that locks do not know of stay as they came.
type message []byte

// field is one field of a message.
type field struct {
	number int
	kind   byte
	value  uint64  // if it is a number
	text   message // otherwise
}

// The kinds of fields that locks read and write.
const (
	numberKind = 0
	textKind   = 2
)

var errMessage = errors.New("the server sends a damaged message")

// cut returns the first field of a message that is not empty, and what follows.
func (m message) cut() (f field, rest message, err error) {
	tag, n := binary.Uvarint(m)
	if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
		return f, nil, errMessage
	}
	m = m[n:]
	f.number, f.kind = int(tag>>3), byte(tag&7)
	length := uint64(0)
	switch f.kind {
	case numberKind:
		f.value, n = binary.Uvarint(m)
	case textKind:
		length, n = binary.Uvarint(m)
	case 1:
		length, n = 8, 0
	case 5:
		length, n = 4, 0
	default:
		return f, nil, errMessage
	}
	if n < 0 || n == 0 && (f.kind == numberKind || f.kind == textKind) || length > uint64(len(m)-n) {
		return f, nil, errMessage
	}
	f.text = m[n : n+int(length) : n+int(length)]
	return f, m[n+int(length):], nil
}

// fields calls each with the fields until it returns false. The error is about a field that is damaged.
func (m message) fields(each func(f field) bool) error {
	for len(m) > 0 {
		f, rest, err := m.cut()
		if err != nil {
			return err
		}
		if !each(f) {
			return nil
		}
		m = rest
	}
	return nil
}

// last returns the last field of a number and a kind, and an empty one if there is none or m is damaged.
func (m message) last(number int, kind byte) (last field) {
	_ = m.fields(func(f field) bool {
		if f.number == number && f.kind == kind {
			last = f
		}
		return true
	})
	return last
}

func (m message) text(number int) string { return string(m.last(number, textKind).text) }

func (m message) inner(number int) message { return m.last(number, textKind).text }

func (m message) number(number int) int64 { return int64(m.last(number, numberKind).value) }

// time returns a time, and the zero one if there is none.
func (m message) time(number int) time.Time {
	t := m.inner(number)
	if len(t) == 0 {
		return time.Time{}
	}
	return time.Unix(t.number(1), t.number(2))
}

// remove removes fields, in place.
func (m *message) remove(unwanted func(f field) bool) {
	kept := (*m)[:0]
	for left := *m; len(left) > 0; {
		f, rest, err := left.cut()
		if err != nil {
			rest = nil // m is damaged, and stays so
		}
		if err != nil || !unwanted(f) {
			kept = append(kept, left[:len(left)-len(rest)]...)
		}
		left = rest
	}
	*m = kept
}

func (m *message) delete(number int) { m.remove(func(f field) bool { return f.number == number }) }

// add adds a field. It may write behind m.
func (m *message) add(number int, value []byte) {
	b := binary.AppendUvarint(*m, uint64(number)<<3|textKind)
	*m = append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// set replaces all fields of a number by one.
func (m *message) set(number int, value []byte) {
	m.delete(number)
	m.add(number, value)
}

func (m *message) setNumber(number int, value int64) {
	m.delete(number)
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(number)<<3|numberKind), uint64(value))
}

// setTime sets a time without fractions of a microsecond.
func (m *message) setTime(number int, t time.Time) {
	var at message
	at.setNumber(1, t.Unix())
	at.setNumber(2, int64(t.Nanosecond()/1000*1000))
	m.set(number, at)
}

// entry returns what a map has under a key.
func (m message) entry(number int, key string) (value string, ok bool) {
	_ = m.fields(func(f field) bool {
		if ok = f.number == number && string(f.text.inner(1)) == key; ok {
			value = f.text.text(2)
		}
		return !ok
	})
	return value, ok
}

func (m *message) setEntry(number int, key, value string) {
	m.deleteEntry(number, key)
	e := make(message, 0, len(key)+len(value)+2*binary.MaxVarintLen32)
	e.add(1, []byte(key))
	e.add(2, []byte(value))
	m.add(number, e)
}

func (m *message) deleteEntry(number int, key string) {
	m.remove(func(f field) bool { return f.number == number && string(f.text.inner(1)) == key })
}

// magic is what an enveloped message of Kubernetes begins with.
const magic = "k8s\x00"

// envelop returns a message of some kind as the API server reads it.
func envelop(version, kind string, m message) message {
	var meta message
	meta.add(1, []byte(version))
	meta.add(2, []byte(kind))
	sealed := append(make(message, 0, len(m)+100), magic...)
	sealed.add(1, meta)
	sealed.add(2, m)
	return sealed
}

// unwrap returns the message in an envelope, or b itself if there is none.
func unwrap(b message) message {
	if sealed, ok := bytes.CutPrefix(b, []byte(magic)); ok {
		return message(sealed).inner(2)
	}
	return b
}
