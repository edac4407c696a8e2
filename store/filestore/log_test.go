package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// alone is a folder without other processes.
type alone struct{}

func (alone) seen(uint64, fileID) (int64, error) { return 0, nil }
func (alone) mark(uint64, fileID, int64)         {}

// openTestLog opens a log whose clock the test sets.
func openTestLog(t *testing.T, dir string, wall *time.Time) *log {
	t.Helper()
	clock := func() (time.Duration, error) { return time.Hour, nil }
	l := &log{dir: dir, mode: 0o600, boot: "boot", clock: clock, wall: func() time.Time { return *wall }, others: alone{}}
	t.Cleanup(l.close)
	return l
}

func mustRead(t *testing.T, l *log, key string) recordstore.Item {
	t.Helper()
	it, err := l.read(key)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// put replaces the newest version of a record.
func put(t *testing.T, l *log, key, value string, idle bool) string {
	t.Helper()
	for {
		next, err := l.replace(key, []byte(value), mustRead(t, l, key).Version, idle)
		if errors.Is(err, recordstore.ErrConflict) {
			continue // of the file that goes on in another one
		}
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
}

// A version that two processes have read is replaced once.
func TestOneOfTwoWritesIsApplied(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, b := openTestLog(t, dir, &now), openTestLog(t, dir, &now)
	first, same := mustRead(t, a, "k"), mustRead(t, b, "k")
	next, err := a.replace("k", []byte("1"), first.Version, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.replace("k", []byte("2"), same.Version, false); !errors.Is(err, recordstore.ErrConflict) {
		t.Errorf("write in place of a version that is gone: %v, want %v", err, recordstore.ErrConflict)
	}
	if it := mustRead(t, b, "k"); string(it.Value) != "1" || it.Version != next {
		t.Errorf("%q with version %s, want 1 with %s", it.Value, it.Version, next)
	}
	if _, err := b.replace("k", []byte("2"), next, false); err != nil {
		t.Error(err)
	}
	if _, err := a.replace("k", []byte("3"), next, false); !errors.Is(err, recordstore.ErrConflict) {
		t.Errorf("write in place of a version that is gone: %v, want %v", err, recordstore.ErrConflict)
	}
}

// A part of a frame, which a process that was killed leaves, has no effect, and what others append
// after it has. A part at the end of the log may still be in the making.
func TestPartsOfFrames(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, b := openTestLog(t, dir, &now), openTestLog(t, dir, &now)
	old := put(t, a, "k", "1", false)
	whole := (&frame{kind: write, base: a.index["k"].id, id: 7, key: "k", value: bytes.Repeat([]byte("x"), 300)}).appendTo(nil, a.salt)
	for n := 1; n < len(whole); n += 1 + n/8 {
		f, err := os.OpenFile(a.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if it := mustRead(t, b, "k"); it.Version != old {
			t.Fatalf("a part of %d bytes has an effect: version %s, want %s", n, it.Version, old)
		}
		want := strconv.Itoa(n)
		old = put(t, a, "k", want, false)
		if it := mustRead(t, b, "k"); string(it.Value) != want || it.Version != old {
			t.Fatalf("after a part of %d bytes: %q, want %q", n, it.Value, want)
		}
	}
	late := openTestLog(t, dir, &now) // reads it all at once
	if it := mustRead(t, late, "k"); it.Version != old {
		t.Errorf("a newcomer reads version %s, want %s", it.Version, old)
	}
	// The end of a frame comes.
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole = (&frame{kind: write, base: a.index["k"].id, id: 9, key: "k", value: []byte("end")}).appendTo(nil, a.salt)
	for i, part := range [][]byte{whole[:20], whole[20:]} {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		if it := mustRead(t, b, "k"); (string(it.Value) == "end") != (i == 1) {
			t.Errorf("part %d of a frame: %q", i, it.Value)
		}
	}
}

// A log goes on in another file when it has grown. Nothing in use is lost, what nobody uses is, and
// one old file stays.
func TestLogGoesOnInAnotherFile(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, b := openTestLog(t, dir, &now), openTestLog(t, dir, &now)
	used := put(t, a, "used", "u", false)
	put(t, a, "idle", "i", true)
	mustRead(t, b, "used")
	value := string(bytes.Repeat([]byte("v"), 1000))
	for i := range 2000 {
		if i == 500 {
			now = now.Add(time.Minute)
		}
		put(t, []*log{a, b}[i%2], fmt.Sprint("k", i%3), value, false)
	}
	gens, err := a.files()
	if err != nil || len(gens) > 2 || gens[len(gens)-1] < 5 {
		t.Errorf("files %v, %v, want the last two of several", gens, err)
	}
	for i, l := range []*log{a, b, openTestLog(t, dir, &now)} {
		if it := mustRead(t, l, "used"); it.Version != used || string(it.Value) != "u" {
			t.Errorf("log %d: %+v, want version %s", i, it, used)
		}
		if it := mustRead(t, l, "idle"); it.Value != nil {
			t.Errorf("log %d still has a record that nobody uses: %+v", i, it)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A process that was stopped before it made the next file, and makes it when that is long gone,
// changes nothing.
func TestLateMakerOfAFile(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, late := openTestLog(t, dir, &now), openTestLog(t, dir, &now)
	put(t, a, "k", "old", false)
	mustRead(t, late, "k")
	seal := func() {
		if _, err := a.f.Write((&frame{kind: seal}).appendTo(nil, a.salt)); err != nil {
			t.Fatal(err)
		}
	}
	seal()
	st, err := lookAt(late.f)
	if err == nil {
		err = late.replay(st.size)
	}
	if err != nil || !late.sealed {
		t.Fatal("the late process has not read the seal", err)
	}
	for i := range 4 {
		put(t, a, "k", fmt.Sprint("new", i), false)
		seal()
	}
	want := put(t, a, "k", "newest", false)
	if err := late.make(); err != nil {
		t.Fatal(err)
	}
	for i, l := range []*log{late, a, openTestLog(t, dir, &now)} {
		if it := mustRead(t, l, "k"); it.Version != want {
			t.Errorf("log %d: %q, want newest", i, it.Value)
		}
	}
}

// A maker that was stopped before it removed the first name of a log holds up nobody.
func TestStoppedMakerOfAFile(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a := openTestLog(t, dir, &now)
	want := put(t, a, "k", "v", false)
	for _, l := range []*log{a, openTestLog(t, dir, &now)} {
		if err := os.Link(a.path, filepath.Join(dir, newLog+"x")); err != nil {
			t.Fatal(err)
		}
		if it := mustRead(t, l, "k"); it.Version != want {
			t.Errorf("%+v, want version %s", it, want)
		}
	}
	if err := os.Link(a.path, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	_, err := a.read("k")
	said(t, err, "2 names")
}

// Nobody is told of two names while the process that makes a log removes the first one.
func TestNamesOfAFileThatIsMade(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a := openTestLog(t, dir, &now)
	mustRead(t, a, "k")
	for i := range 300 { // a folder takes time to read
		if err := os.WriteFile(filepath.Join(dir, newLog+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 1500 {
		linked, removed := make(chan error), make(chan error)
		go func() {
			temp := filepath.Join(dir, newLog+"x")
			linked <- os.Link(a.path, temp)
			if err := os.Remove(temp); !errors.Is(err, fs.ErrNotExist) { // a reader may have removed it
				removed <- err
			}
			close(removed)
		}()
		err := <-linked
		if err == nil {
			_, err = a.read("k")
		}
		if err := errors.Join(err, <-removed); err != nil {
			t.Fatal(err)
		}
	}
}

// A record that was dropped goes on above the number that it had, whatever the clock says.
func TestNumbersOfADroppedRecord(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	l := openTestLog(t, dir, &now)
	last := uint64(0)
	for _, step := range []time.Duration{0, -time.Hour, 0, 2 * time.Hour, -3 * time.Hour, 0} {
		now = now.Add(step)
		it := mustRead(t, l, "k")
		if it.Value == nil && it.Floor < last {
			t.Errorf("after a step of %v of the clock the floor is %d, want at least %d", step, it.Floor, last)
		}
		floor := l.floor()
		if floor < last {
			t.Errorf("after a step of %v of the clock tokens begin at %d, want at least %d", step, floor, last)
		}
		put(t, l, "k", "v", true)
		last = l.index["k"].number
		if _, err := l.f.Write((&frame{kind: seal}).appendTo(nil, l.salt)); err != nil {
			t.Fatal(err)
		}
	}
	// With a clock that stands, as many writes as there are tokens below the next floor raise it.
	before := l.floor()
	for range 3000 {
		put(t, l, "k", "v", true)
	}
	if after := l.floor(); after < before+3 {
		t.Errorf("3000 writes with a clock that stands raise the floor from %d to %d, want 3 at least", before, after)
	}
}

// Goroutines with logs of their own replace one record, and no replacement is lost.
func TestNoWriteIsLost(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	const each = 300
	done := make(chan error)
	logs := []*log{openTestLog(t, dir, &now), openTestLog(t, dir, &now), openTestLog(t, dir, &now)}
	for _, l := range logs {
		go func() {
			for n := 0; n < each; {
				it, err := l.read("k")
				if err != nil {
					done <- err
					return
				}
				count, _ := strconv.Atoi(string(it.Value))
				_, err = l.replace("k", strconv.AppendInt(bytes.Repeat([]byte("0"), rand.IntN(500)), int64(count+1), 10), it.Version, false)
				switch {
				case err == nil:
					n++
				case !errors.Is(err, recordstore.ErrConflict):
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range logs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n, err := strconv.Atoi(string(mustRead(t, logs[0], "k").Value)); n != each*len(logs) || err != nil {
		t.Errorf("counted to %d (%v), want %d", n, err, each*len(logs))
	}
}

// A frame is read as it was written, and any other bytes are refused.
func FuzzFrame(f *testing.F) {
	f.Add((&frame{kind: write, idle: true, base: 1, id: 2, floor: 3, number: 4, written: 5, key: "k", value: []byte("v")}).appendTo(nil, 7))
	f.Add((&frame{kind: seal}).appendTo(nil, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, n, err := parse(b, 7)
		if err != nil {
			return
		}
		if again := g.appendTo(nil, 7); len(again) != n {
			t.Errorf("%d bytes, written again %d", n, len(again))
		}
	})
}
