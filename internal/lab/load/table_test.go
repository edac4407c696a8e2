package load

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func result(operations uint64, lock time.Duration) Result {
	r := Result{Goroutines: 16, Elapsed: time.Second, Operations: operations, PerSecond: float64(operations), CPU: time.Duration(operations) * 3000, Allocs: 12 * operations}
	for range operations {
		r.Lock.add(lock)
		r.Unlock.add(lock / 2)
	}
	return r
}

func TestSummarize(t *testing.T) {
	no := errors.New("no")
	broken := Result{Goroutines: 16, Elapsed: time.Second, Errors: 3, Err: no}
	s := Summarize([]Result{result(100, 4096), broken, result(300, 2048), result(200, 65536), result(400, 128)})
	if s.Goroutines != 16 || s.Rounds != 5 || s.Operations != 1000 || s.Errors != 3 || s.Err != no {
		t.Errorf("%+v, want 16 goroutines, 5 rounds, 1000 operations and 3 errors (%v)", s, no)
	}
	if s.PerSecond != 200 { // of 0, 100, 200, 300, 400
		t.Errorf("%v per second, want the median, 200", s.PerSecond)
	}
	// The round without operations has no durations.
	if d := s.LockP50; d < 2048 || d > 2048*65/64 {
		t.Errorf("p50 of Lock %v, want about 2.048µs", d)
	}
	if s.CPU != 3000 || s.Allocs != 12 {
		t.Errorf("CPU %v and %v allocations per operation, want 3µs and 12", s.CPU, s.Allocs)
	}
	if none := Summarize(nil); none.PerSecond != 0 || none.LockP99 != 0 {
		t.Errorf("the summary of no results: %+v, want zeros", none)
	}
}

func TestTable(t *testing.T) {
	rows := []Row{{Summary: Summarize([]Result{result(1234, 4096)})}, {Summary: Summary{Goroutines: 256}}}
	var text, md strings.Builder
	if err := Print(&text, rows); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&md, rows); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"GOROUTINES", "1,234", "4.1µs", "2.1µs", "3.0µs", "12.0", "256", " - "} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is missing:\n%s", part, text.String())
		}
		if !strings.Contains(strings.ToLower(md.String()), strings.ToLower(part)) {
			t.Errorf("%q is missing:\n%s", part, md.String())
		}
	}
	for _, part := range []string{"SERVER", "COMMANDS", "ERRORS"} {
		if strings.Contains(text.String(), part) {
			t.Errorf("the column %s is printed without figures:\n%s", part, text.String())
		}
	}
	rows[0].Name, rows[0].ServerCPU, rows[0].Commands, rows[1].Errors = "ours", 25*time.Microsecond, 10, 7
	text.Reset()
	if err := Print(&text, rows); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"ours", "SERVER CPU", "25µs", "COMMANDS", "10.0", "ERRORS", "7"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is missing:\n%s", part, text.String())
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Thousands(0.31), "0.3"}, {Thousands(99.6), "100"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(1234567), "1,234,567"},
		{Micros(0), ""}, {Micros(1500), "1.5µs"}, {Micros(123456), "123µs"}, {Micros(9 * time.Millisecond), "9000µs"},
		{Micros(123 * time.Millisecond), "123ms"}, {Micros(1500 * time.Millisecond), "1.5s"},
		{Small(0), ""}, {Small(12.34), "12.3"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
