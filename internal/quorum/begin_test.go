package quorum

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// dirty gives every field of v a value that is not zero.
func dirty(t *testing.T, v reflect.Value) {
	if !v.CanSet() { // it is not exported
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			dirty(t, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			dirty(t, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("used")
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("an attempt has a %v, which this test cannot set", v.Type())
	}
	if v.IsZero() {
		t.Fatalf("a %v is still zero", v.Type())
	}
}

// Begin leaves nothing of the attempt that had the memory before, of more nodes or of fewer.
func TestBeginLeavesNothingBehind(t *testing.T) {
	const ttl, start = 3 * time.Second, clock.Instant(time.Hour)
	for _, before := range []int{1, 5, MaxNodes} {
		for _, nodes := range []int{1, 3, 5, MaxNodes} {
			var used Attempt
			dirty(t, reflect.ValueOf(&used).Elem())
			used.Nodes = before
			clear(used.nodes[before:])
			c := Config{Nodes: nodes, NodeTimeout: 50 * time.Millisecond, Sets: [2]Set{AllOf(nodes)}}
			used.Begin(c, ttl, start)
			if fresh := NewAttempt(c, ttl, start); used != fresh {
				t.Errorf("after an attempt of %d nodes, one of %d: %+v, want %+v", before, nodes, used, fresh)
			}
		}
	}
}
