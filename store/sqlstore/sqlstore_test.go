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

// Statements end at semicolons, or at the delimiter, outside of bodies and comments.
func TestStatements(t *testing.T) {
	for d, starts := range map[Dialect]string{
		PostgreSQL: "SELECT CREATE ALTER DO REVOKE INSERT",
		MySQL:      "DO SET CREATE CALL DROP INSERT",
	} {
		script, err := Script(d, "")
		if err != nil {
			t.Fatal(err)
		}
		all := engines[d].statements(script)
		for _, s := range all {
			first, _, _ := strings.Cut(s, " ")
			if !strings.Contains(starts, first) || strings.Count(s, "$$")%2 != 0 || strings.Contains(s, "DELIMITER") {
				t.Errorf("%v: not one whole statement: %.60s", d, s)
			}
		}
		want := 0
		for first := range strings.FieldsSeq(starts) {
			want += strings.Count(script, "\n"+first+" ")
		}
		if len(all) != want {
			t.Errorf("%v: %d statements, want %d", d, len(all), want)
		}
		for _, mark := range []string{"@schema@", "@version@", "@oldest@", "@clock@"} {
			if strings.Contains(script, mark) {
				t.Errorf("%v: the script still has %s, want no %q", d, mark, mark)
			}
		}
	}
}

// The error for a program without a driver names the one to import.
func TestNoDriver(t *testing.T) {
	for url, driver := range map[string]string{"postgres://a/b": "pgx", "mysql://a/b": "go-sql-driver", "mariadb://a/b": "go-sql-driver"} {
		if _, err := ParseURL(url); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), driver) {
			t.Errorf("%s: %v, want an error that names the driver %s", url, err, driver)
		}
	}
}

type serverError string

func (e serverError) Error() string    { return "server says " + string(e) }
func (e serverError) SQLState() string { return string(e) }

// The error of a server decides whether a call had an effect, whether it is made again, and which
// outcome is reported. Without an answer of the server the outcome is unknown.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		d                        Dialect
		err                      error
		certain, again, unusable bool
		outcome                  store.Outcome
	}{
		{PostgreSQL, errors.New("broken pipe"), false, false, true, store.Unreachable},
		{PostgreSQL, driver.ErrBadConn, false, true, true, store.Unreachable},
		{PostgreSQL, serverError("40001"), true, true, false, store.Unsettled},
		{PostgreSQL, serverError("40P01"), true, true, false, store.Unsettled},
		{PostgreSQL, serverError("40003"), false, false, false, store.Refused},
		{PostgreSQL, serverError("25006"), true, true, true, store.Unsettled},
		{PostgreSQL, serverError("57P01"), false, false, true, store.Unreachable},
		{PostgreSQL, serverError("57P03"), false, false, true, store.Loading},
		{PostgreSQL, serverError("57014"), true, false, false, store.Unsettled},
		{PostgreSQL, serverError("08006"), false, false, true, store.Unreachable},
		{PostgreSQL, serverError("53300"), true, false, false, store.Unsettled},
		{PostgreSQL, serverError("53100"), true, false, false, store.Refused},
		{PostgreSQL, serverError("42501"), true, false, false, store.Refused},
		{PostgreSQL, serverError("42P05"), true, true, true, store.Refused},
		{PostgreSQL, serverError("26000"), true, true, true, store.Refused},
		{PostgreSQL, serverError("0A000"), true, true, true, store.Refused},

		{MySQL, errors.New("invalid connection"), false, false, true, store.Unreachable},
		{MySQL, driver.ErrBadConn, false, true, true, store.Unreachable},
		{MySQL, errors.New("Error 1213 (40001): Deadlock found"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 3058 (HY000): Deadlock found when trying to get user-level lock"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1290 (HY000): the server is read-only"), true, true, true, store.Unsettled},
		{MySQL, errors.New("Error 1047: WSREP has not yet prepared node"), true, true, true, store.Unsettled},
		{MySQL, errors.New("Error 1053 (08S01): Server shutdown in progress"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 3032 (HY000): The server is currently in offline mode"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 3159 (HY000): Connections using insecure transport are prohibited"), true, false, false, store.Refused},
		{MySQL, errors.New("Error 1927 (70100): Connection was killed"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 1317 (70100): Query execution was interrupted"), false, false, false, store.Refused},
		{MySQL, errors.New("Error 1180 (HY000): Got error 5 during COMMIT"), false, false, false, store.Refused},
		{MySQL, errors.New("Error 1040 (08004): Too many connections"), true, false, false, store.Unsettled},
		{MySQL, errors.New("Error 1370 (42000): execute command denied"), true, false, false, store.Refused},
		{MySQL, errors.New("Error 1644 (LH002): the lease is over"), true, false, false, store.Refused},
	} {
		f := engines[c.d].fault(fmt.Errorf("wrapped: %w", c.err))
		if f.certain != c.certain || f.again != c.again || f.unusable != c.unusable || f.outcome != c.outcome {
			t.Errorf("%v: %v: %+v, want certain %v, again %v, unusable %v, outcome %v", c.d, c.err, f, c.certain, c.again, c.unusable, c.outcome)
		}
	}
}

// Arguments of a call in MySQL mean the same whatever they contain and however the
// session is set.
func TestLiterals(t *testing.T) {
	text, rest := mysql{}.procedure("s", "p", "", 4)([]any{[]byte("a'\\\x00"), "", int64(-7), true})
	if want := "CALL s.p(x'61275c00',x'',-7,true)"; text != want || rest != nil {
		t.Errorf("%s, %v, want %s", text, rest, want)
	}
}

// A waiter that the server wakes does not pause, unless its look found no change. Other waiters
// look less and less often, and at the latest when the holder's lease ends.
func TestPace(t *testing.T) {
	p := pace{ttl: 30 * time.Second}
	a := answer{position: 1, ahead: 7, endsIn: 10 * time.Second}
	p.news(&a)
	if d := p.pause(&a, true); d != 0 {
		t.Errorf("the first look of a waiter with a signal comes after %v, want at once", d)
	}
	p.news(&a)
	p.news(&a)
	if p.pause(&a, true) == 0 {
		t.Error("no pause after looks without a change, want one")
	}
	// The waiter before it is gone, so that waiting for its signal ends at once.
	for range 3 {
		a.waited, a.refreshed = true, true
		p.news(&a)
	}
	if p.pause(&a, true) == 0 {
		t.Error("no pause after wakes without a change, want one")
	}
	a = answer{position: 1, endsIn: a.endsIn}
	p.news(&a)
	last := time.Duration(0)
	for range 40 {
		d := p.pause(&a, false)
		if d < last || d > 100*time.Millisecond {
			t.Fatalf("a pause of %v after one of %v, want it no shorter, and at most 100ms", d, last)
		}
		last = d
		p.news(&a)
	}
	a.endsIn = 3 * time.Millisecond
	if d := p.pause(&a, false); d > a.endsIn {
		t.Errorf("a pause of %v, want at most the %v until the lease ends", d, a.endsIn)
	}
	a.position = 50
	if d := p.pause(&a, false); d < 500*time.Millisecond || d > time.Second {
		t.Errorf("a waiter far back pauses for %v, want 500ms to 1s", d)
	}
	short := pace{ttl: 80 * time.Millisecond}
	if d := short.pause(&a, false); d > short.ttl/8 {
		t.Errorf("a place of %v is refreshed after %v, want at most an eighth", short.ttl, d)
	}
}
