package zk

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func named(s string) []byte { return appendBytes(nil, s) }

// Answers are read as the protocol has them, and those that end early are errors.
func TestAnswers(t *testing.T) {
	stat := binary.BigEndian.AppendUint64(nil, 7)
	stat = append(stat, make([]byte, statSize-8)...)
	stat[23], stat[31], stat[35] = 1, 2, 3
	list := slices.Concat([]byte{0, 0, 0, 2}, named("a"), named("bc"), stat)
	if names, _, err := (Answer{body: list}).Names(); err != nil || !slices.Equal(names, []string{"a", "bc"}) {
		t.Errorf("names %q, %v, want a and bc", names, err)
	}
	for length, want := range []bool{false, true} {
		list[len(list)-statSize+dataLengthAt+3] = byte(length)
		if _, data, err := (Answer{body: list}).Names(); err != nil || data != want {
			t.Errorf("a node with %d bytes of data: data: %v, %v, want %v", length, data, err, want)
		}
	}
	if n, ok, err := (Answer{body: append(named("data"), stat...)}).Node(); err != nil || !ok || string(n.Data) != "data" || n.Czxid != 7 || n.Version != 3 ||
		n.Changed.UnixMilli() != 2 {
		t.Errorf("node %+v, %v, %v, want version 3 with data, made by 7 at 1 ms and changed at 2 ms", n, ok, err)
	}
	if path, czxid, err := (Answer{body: append(named("/x"), stat...), zxid: 9}).Created(); err != nil || path != "/x" || czxid != 7 {
		t.Errorf("created %q by %d, %v, want /x by 7", path, czxid, err)
	}
	for n := range len(list) - statSize + dataLengthAt + 4 {
		if _, _, err := (Answer{body: list[:n]}).Names(); err == nil {
			t.Errorf("the first %d bytes are read as names, want an error", n)
		}
	}
	none := Answer{Err: ErrNoNode}
	if names, _, err := none.Names(); err != nil || names != nil {
		t.Errorf("names below no node: %q, %v, want none", names, err)
	}
	if _, ok, err := none.Node(); err != nil || ok {
		t.Errorf("no node: %v, %v, want false", ok, err)
	}
}

// The parts of a transaction have the zxid of the whole, and if one has failed, only that
// one has an error.
func TestAnswerToATransaction(t *testing.T) {
	end := []byte{255, 255, 255, 255, 1, 255, 255, 255, 255}
	part := func(op byte) []byte { return []byte{0, 0, 0, op, 0, 0, 0, 0, 0} }
	done := slices.Concat(part(opCheck), part(opDelete), part(opCreate), named("/x"), end)
	parts, err := (Answer{body: done, zxid: 9}).Each(3)
	if err != nil || len(parts) != 3 {
		t.Fatalf("parts: %+v, %v, want 3", parts, err)
	}
	if path, czxid, err := parts[2].Created(); err != nil || path != "/x" || czxid != 9 {
		t.Errorf("created %q by %d, %v, want /x by 9", path, czxid, err)
	}
	for n := range done {
		if _, err := (Answer{body: done[:n]}).Each(3); err == nil {
			t.Errorf("the first %d bytes are read as a transaction, want an error", n)
		}
	}
	for _, n := range []int{2, 4} {
		if _, err := (Answer{body: done}).Each(n); !Broken(err) {
			t.Errorf("three parts are read as the answer to %d: %v, want a broken answer", n, err)
		}
	}
	stat := append(binary.BigEndian.AppendUint64(nil, 7), make([]byte, statSize-8)...)
	parts, err = (Answer{body: slices.Concat(part(opCreate2), named("/x"), stat, end), zxid: 9}).Each(1)
	if err != nil {
		t.Fatal(err)
	}
	if path, czxid, err := parts[0].Created(); err != nil || path != "/x" || czxid != 7 {
		t.Errorf("a newer server created %q by %d, %v, want /x by 7", path, czxid, err)
	}
	failed := func(code int32) []byte {
		b := []byte{255, 255, 255, 255, 0}
		b = binary.BigEndian.AppendUint32(b, uint32(code))
		return binary.BigEndian.AppendUint32(b, uint32(code))
	}
	parts, err = (Answer{body: slices.Concat(failed(0), failed(-101), failed(-2), end)}).Each(3)
	if !errors.Is(err, ErrNoNode) || len(parts) != 3 || parts[0].Err != nil || !errors.Is(parts[1].Err, ErrNoNode) || parts[2].Err != nil {
		t.Errorf("parts: %+v, %v, want 3 of which the second has %v", parts, err, ErrNoNode)
	}
}
