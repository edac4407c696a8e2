package sqlstoretest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The procedures do what package rule says, command by command, and leave the same rows.
func TestProceduresFollowTheRule(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		differential.Check(t, newProcedures(t, on, nil))
	})
}

// procedures are those of one schema, whose clock the test sets.
type procedures struct {
	on     *bed
	db     *sql.DB
	schema string
}

// newProcedures installs the procedures with a clock of the test's own, after change
// has edited them.
func newProcedures(t *testing.T, on *bed, change func(script string) string) *procedures {
	t.Helper()
	p := &procedures{on: on, db: on.handle(t, on.direct...), schema: newName()}
	script, err := sqlstore.Script(on.dialect, p.schema)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		script = change(script)
	}
	on.run(t, on, on.in(p.schema, on.withClock(script, "CREATE TABLE S.time (us bigint); INSERT INTO S.time VALUES (0);", "us FROM S.time")))
	return p
}

func (p *procedures) do(query string, args ...any) error {
	_, err := p.db.ExecContext(context.Background(), p.on.in(p.schema, query), args...)
	return err
}

// call calls a procedure and returns some of its columns for each row. Null is empty.
func (p *procedures) call(name, columns string, args ...any) ([][]string, error) {
	rows, err := p.db.QueryContext(context.Background(), p.on.in(p.schema, p.on.call(name, columns, len(args))), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		scan := make([]any, len(names))
		for i := range values {
			scan[i] = &values[i]
		}
		if err := rows.Scan(scan...); err != nil {
			return nil, err
		}
		var row []string
		for column := range strings.SplitSeq(columns, ", ") {
			i := slices.Index(names, column)
			if i < 0 {
				return nil, fmt.Errorf("%s returns no column %s", name, column)
			}
			row = append(row, values[i].String)
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// one is call for a procedure that returns one row.
func (p *procedures) one(name, columns string, args ...any) ([]string, error) {
	all, err := p.call(name, columns, args...)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s returns %d rows, want one", name, len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func number(text string) int64 {
	n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func span(us string) time.Duration { return time.Duration(number(us)) * time.Microsecond }

func (p *procedures) Traits() differential.Traits {
	return differential.Traits{Tombstones: true, Resolution: time.Microsecond}
}

func (p *procedures) Begin(now clock.Instant) error {
	for _, table := range []string{"locks", "places", "tombs", "breaks", "holds", "waits"} {
		if err := p.do("DELETE FROM S." + table); err != nil {
			return err
		}
	}
	return p.do(fmt.Sprintf(`UPDATE S.time SET us = %d`, now/1000))
}

func (p *procedures) Pass(d time.Duration) error {
	return p.do(`UPDATE S.time SET us = us + ?`, d.Microseconds())
}

func (p *procedures) Clock() (clock.Instant, error) {
	var us int64
	err := p.db.QueryRowContext(context.Background(), p.on.in(p.schema, `SELECT us FROM S.time`)).Scan(&us)
	return clock.Instant(us) * 1000, err
}

// micros rounds up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func (p *procedures) Do(c differential.Command) (a differential.Answer, err error) {
	done := false
	switch c.Op {
	case differential.Acquire:
		r, err := p.ask(c.Lock, c.Owner.ID, c.Owner.Meta, c.TTL, false, false)
		switch r.verdict {
		case "granted", "again":
			return differential.Answer{Verdict: differential.Done, Token: uint64(r.token)}, err
		case "busy":
			return differential.Answer{Verdict: differential.Taken, Holder: r.owner, Left: r.left}, err
		case "buried":
			return differential.Answer{Verdict: differential.Buried}, err
		}
		return a, fmt.Errorf("verdict %q: %w", r.verdict, err)
	case differential.Extend:
		done, err = p.renew(c.Lock, c.Owner.ID, c.TTL)
	case differential.Release:
		done, err = p.release(c.Lock, c.Owner.ID, 0)
	case differential.Bury:
		done, err = p.release(c.Lock, c.Owner.ID, c.TTL)
	}
	if done {
		return differential.Answer{Verdict: differential.Done}, err
	}
	return differential.Answer{Verdict: differential.NotHeld}, err
}

// reply is the part of an answer that the rule knows.
type reply struct {
	verdict, owner string
	token          int64
	left           time.Duration
	position       int
}

func (p *procedures) ask(lock, owner, meta string, ttl time.Duration, wait, barge bool) (r reply, err error) {
	row, err := p.one("ask", "verdict, owner, token, ends_in, position",
		[]byte(lock), owner, "", []byte(meta), micros(ttl), 0, wait, barge, true, int64(0))
	if err != nil {
		return r, err
	}
	return reply{row[0], row[1], number(row[2]), span(row[3]), int(number(row[4]))}, nil
}

func (p *procedures) renew(lock, owner string, ttl time.Duration) (bool, error) {
	row, err := p.one("renew", "held", hex.EncodeToString([]byte(lock)), owner, fmt.Sprint(micros(ttl)), true)
	return err == nil && row[0] != "f", err
}

func (p *procedures) release(lock, owner string, tombstone time.Duration) (done bool, err error) {
	row, err := p.one("release", "done", []byte(lock), owner, "", false, micros(tombstone), false, int64(0))
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(row[0])
}

// rejoin releases a lock and takes the next place for the same owner.
func (p *procedures) rejoin(lock, owner string, ttl time.Duration, barge bool) (done, standing bool, err error) {
	row, err := p.one("release_and_rejoin", "done, standing", []byte(lock), owner, "", false, 0, false, int64(0),
		owner, "", []byte(""), micros(ttl), 0, barge, true, int64(0))
	if err != nil {
		return false, false, err
	}
	if done, err = strconv.ParseBool(row[0]); err == nil {
		standing, err = strconv.ParseBool(row[1])
	}
	return done, standing, err
}

// Look reads the rows, and requires that inspect and list return the same.
func (p *procedures) Look(lock string) (differential.State, error) {
	s := differential.State{Tombstones: map[string]time.Duration{}}
	now, err := p.Clock()
	if err != nil {
		return s, err
	}
	at := int64(now) / 1000
	var owner sql.NullString
	var left, token sql.NullInt64
	err = p.db.QueryRowContext(context.Background(), p.on.in(p.schema, `SELECT owner, ends - ?, granted FROM S.locks WHERE name = ? AND ends > ?`),
		at, []byte(lock), at).Scan(&owner, &left, &token)
	if err != nil && err != sql.ErrNoRows {
		return s, err
	}
	if owner.Valid {
		s.Holder, s.Left, s.Token = owner.String, time.Duration(left.Int64)*time.Microsecond, uint64(token.Int64)
	}
	inspected, err := p.call("inspect", "position, owner, ends_in, token", []byte(lock), 10)
	if err != nil {
		return s, err
	}
	listed, err := p.call("list", "name, owner, ends_in, token", []byte(lock), []byte(""), 10)
	if err != nil {
		return s, err
	}
	for what, rows := range map[string][][]string{"inspect": inspected, "list": listed} {
		var seen []string
		for _, row := range rows {
			if row[0] == "0" || row[0] == lock || strings.EqualFold(row[0], hex.EncodeToString([]byte(lock))) {
				seen = row
			}
		}
		if owner.Valid != (seen != nil) || seen != nil && (seen[1] != owner.String || number(seen[2]) != left.Int64 || number(seen[3]) != token.Int64) {
			return s, fmt.Errorf("%s returns %v, and the rows have %v", what, seen, s)
		}
	}
	rows, err := p.db.QueryContext(context.Background(), p.on.in(p.schema, `SELECT owner, ends - ? FROM S.tombs WHERE name = ? AND ends > ?`), at, []byte(lock), at)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	for rows.Next() {
		var owner string
		var left int64
		if err := rows.Scan(&owner, &left); err != nil {
			return s, err
		}
		s.Tombstones[owner] = time.Duration(left) * time.Microsecond
	}
	return s, rows.Err()
}
