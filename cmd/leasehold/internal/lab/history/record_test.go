package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A history can be read while it is written, up to the last complete line.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	f := Follow(path)
	defer f.Close()
	var got []Op
	read := func(want ...Op) {
		t.Helper()
		got = nil
		if err := f.Read(func(e Event) { got = append(got, e.Op) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	read()
	r, err := NewRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	write := func(e Event) {
		t.Helper()
		if err := r.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	read()
	write(Event{Op: Up})
	write(Event{Op: Ask, N: 1})
	read(Up, Ask)
	if _, err := r.f.WriteString(`{"op":"gran`); err != nil {
		t.Fatal(err)
	}
	read()
	if _, err := r.f.WriteString("ted\"}\n"); err != nil {
		t.Fatal(err)
	}
	read(Granted)
	if _, err := NewRecorder(path); err == nil {
		t.Error("a second recorder of the same file: no error, want one")
	}
	if _, err := r.f.WriteString("nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(func(Event) {}); err == nil || !strings.Contains(err.Error(), path+":4") {
		t.Errorf("a line that is no event: %v, want an error that names it", err)
	}
}

// After a failed write, a history has a gap, and accepts no more events.
func TestRecorderKeepsItsError(t *testing.T) {
	r, err := NewRecorder(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	first := r.Write(Event{Op: Up})
	if again := r.Write(Event{Op: Down}); first == nil || again != first {
		t.Errorf("writing to a closed file: %v, then %v, want the same error twice", first, again)
	}
}

func TestResource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resource")
	var want []Write
	for i := range 3 {
		r, err := OpenResource(path) // each writer opens the file
		if err != nil {
			t.Fatal(err)
		}
		w := Write{By: ID{Proc: i, Life: 2, G: 3, N: 4}, Lock: 1, Number: 7, Token: 1 << 52}
		if err := r.Write(w); err != nil {
			t.Fatal(err)
		}
		want = append(want, w)
		if i == 1 { // killed in the middle of another
			if _, err := r.f.WriteString("{\"by\":\n"); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	got, err := ReadResource(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A history refuses an event of an attempt that has not begun, of an unknown lock, and the
// second beginning of an attempt.
func TestHistoryRefusesImpossibleEvents(t *testing.T) {
	h := New([]string{"a"})
	for _, e := range []Event{
		{Op: Granted, N: 1},
		{Op: Ask, N: 1, Lock: 1},
		{Op: Ask, N: 1, Lock: -1},
	} {
		if err := h.Add(1, 1, e); err == nil {
			t.Errorf("%+v: no error, want one", e)
		}
	}
	if err := h.Add(1, 1, Event{Op: Ask, N: 1}); err != nil {
		t.Error(err)
	}
	if err := h.Add(1, 1, Event{Op: Ask, N: 1}); err == nil {
		t.Error("the same attempt again: no error, want one")
	}
	if err := h.Add(1, 2, Event{Op: Ask, N: 1}); err != nil {
		t.Errorf("the attempt of the next life of the process: %v, want no error", err)
	}
}
