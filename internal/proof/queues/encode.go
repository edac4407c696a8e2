package queues

import (
	"encoding/binary"
	"reflect"
)

// encode returns the same bytes for states that differ only in where they are in memory
// and in the numbers of owners. It reads the queues as they are, so that no field of
// theirs can be forgotten.
func encode(s *state) []byte {
	e := encoder{seen: map[uintptr]uint64{}, owners: map[uint64]uint64{0: 0}}
	e.value(reflect.ValueOf(s).Elem())
	return e.out
}

type encoder struct {
	out    []byte
	seen   map[uintptr]uint64 // pointers, in the order in which they are met
	owners map[uint64]uint64  // the same for owners
}

var ownerType = reflect.TypeFor[owner]()

func (e *encoder) number(n uint64) { e.out = binary.AppendUvarint(e.out, n) }

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			e.number(1)
		} else {
			e.number(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := v.Uint()
		if v.Type() == ownerType {
			known, ok := e.owners[n]
			if !ok {
				known = uint64(len(e.owners))
				e.owners[n] = known
			}
			n = known
		}
		e.number(n)
	case reflect.Struct:
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
	case reflect.Slice:
		e.number(uint64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			e.number(0)
			return
		}
		known, ok := e.seen[v.Pointer()]
		if ok {
			e.number(known)
			return
		}
		known = uint64(len(e.seen)) + 1
		e.seen[v.Pointer()] = known
		e.number(known)
		e.value(v.Elem())
	default:
		panic("queues: a state with a " + v.Kind().String())
	}
}
