package sqlstore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Statements end at semicolons outside of bodies and comments.
func TestStatements(t *testing.T) {
	script, err := Script(PostgreSQL, "")
	if err != nil {
		t.Fatal(err)
	}
	all := statements(script)
	for _, s := range all {
		first, _, _ := strings.Cut(s, " ")
		if !strings.Contains("SELECT CREATE DO REVOKE INSERT", first) || strings.Count(s, "$$")%2 != 0 {
			t.Errorf("no statement: %.60s", s)
		}
	}
	if got, want := len(all), strings.Count(script, "\nCREATE ")+strings.Count(script, "\nDO $$")+4; got != want {
		t.Errorf("%d statements, want %d", got, want)
	}
	if strings.Contains(script, "@") {
		t.Error("a mark was not replaced")
	}
}

// A program without a driver is told which to import.
func TestNoDriver(t *testing.T) {
	if _, err := ParseURL("postgres://a/b"); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "pgx") {
		t.Errorf("%v", err)
	}
}

type serverError string

func (e serverError) Error() string    { return "server says " + string(e) }
func (e serverError) SQLState() string { return string(e) }

// What a server says decides whether a call had an effect, is made again, and what
// the caller is told. Without a word from the server the outcome is unknown.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err                      error
		certain, again, unusable bool
		outcome                  store.Outcome
	}{
		{errors.New("broken pipe"), false, false, true, store.Unreachable},
		{driver.ErrBadConn, true, true, true, store.Unreachable},
		{serverError("40001"), true, true, false, store.Unsettled},
		{serverError("40P01"), true, true, false, store.Unsettled},
		{serverError("40003"), false, false, false, store.Refused},
		{serverError("25006"), true, true, true, store.Unsettled},
		{serverError("57P01"), false, false, true, store.Unreachable},
		{serverError("57P03"), false, false, true, store.Loading},
		{serverError("57014"), true, false, false, store.Unsettled},
		{serverError("08006"), false, false, true, store.Unreachable},
		{serverError("53300"), true, false, false, store.Unsettled},
		{serverError("53100"), true, false, false, store.Refused},
		{serverError("42501"), true, false, false, store.Refused},
	} {
		err := fmt.Errorf("wrapped: %w", c.err)
		if outcome, _ := explain(err); certain(err) != c.certain || again(err) != c.again || unusable(err) != c.unusable || outcome != c.outcome {
			t.Errorf("%v: certain %v, again %v, unusable %v, %v", c.err, certain(err), again(err), unusable(err), outcome)
		}
	}
}

// A waiter that the server wakes does not pause, unless looking was of no use. Others
// look less and less often, and never later than the lease in the way ends.
func TestPace(t *testing.T) {
	p := pace{ttl: 30 * time.Second}
	a := answer{position: 1, ahead: 7, endsIn: 10 * time.Second}
	p.news(&a)
	if d := p.pause(&a, true); d != 0 {
		t.Errorf("the first look of a waiter with a signal comes after %v", d)
	}
	p.news(&a)
	p.news(&a)
	if p.pause(&a, true) == 0 {
		t.Error("looking that is of no use is not paused")
	}
	a.ahead = 0
	p.news(&a)
	last := time.Duration(0)
	for range 40 {
		d := p.pause(&a, false)
		if d < last || d > 100*time.Millisecond {
			t.Fatalf("a pause of %v after one of %v", d, last)
		}
		last = d
		p.news(&a)
	}
	a.endsIn = 3 * time.Millisecond
	if d := p.pause(&a, false); d > a.endsIn {
		t.Errorf("a pause of %v, and the lease ends in %v", d, a.endsIn)
	}
	a.position = 50
	if d := p.pause(&a, false); d < 500*time.Millisecond || d > time.Second {
		t.Errorf("a waiter far back pauses for %v", d)
	}
	short := pace{ttl: 80 * time.Millisecond}
	if d := short.pause(&a, false); d > short.ttl/8 {
		t.Errorf("a place of %v is looked after every %v", short.ttl, d)
	}
}
