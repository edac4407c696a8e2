package sqlstoretest

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The procedures do what package rule says, command by command, and the rows they
// leave agree.
func TestProceduresFollowTheRule(t *testing.T) {
	p := newProcedures(t, nil)
	differential.Check(t, p)
}

// procedures are those of one schema, whose clock the test sets.
type procedures struct {
	db     *sql.DB
	schema string
}

// newProcedures installs the procedures with a clock of the test's own, after change
// has edited them.
func newProcedures(t *testing.T, change func(script string) string) *procedures {
	t.Helper()
	p := &procedures{db: database(t, dsn(postgres, "default_query_exec_mode=simple_protocol")), schema: fmt.Sprintf("locks_%d", schemas.Add(1))}
	script, err := sqlstore.Script(sqlstore.PostgreSQL, p.schema)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		script = change(script)
	}
	p.exec(t, script)
	p.exec(t, `CREATE TABLE S.time (us bigint); INSERT INTO S.time VALUES (0);
		CREATE OR REPLACE FUNCTION S.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT us FROM S.time $$`)
	return p
}

func (p *procedures) in(query string) string { return strings.ReplaceAll(query, "S.", p.schema+".") }

func (p *procedures) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := p.db.ExecContext(t.Context(), p.in(query)); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
}

func (p *procedures) do(query string, args ...any) error {
	_, err := p.db.ExecContext(context.Background(), p.in(query), args...)
	return err
}

func (p *procedures) row(query string, args []any, dest ...any) error {
	return p.db.QueryRowContext(context.Background(), p.in(query), args...).Scan(dest...)
}

func (p *procedures) Traits() differential.Traits {
	return differential.Traits{Tombs: true, Resolution: time.Microsecond}
}

func (p *procedures) Begin(now clock.Instant) error {
	return p.do(fmt.Sprintf(`DELETE FROM S.locks; DELETE FROM S.places; DELETE FROM S.tombs; UPDATE S.time SET us = %d`, now/1000))
}

func (p *procedures) Pass(d time.Duration) error {
	return p.do(`UPDATE S.time SET us = us + $1`, d.Microseconds())
}

func (p *procedures) Clock() (clock.Instant, error) {
	var us int64
	err := p.row(`SELECT us FROM S.time`, nil, &us)
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
	var name sql.NullString
	var token, left, position sql.NullInt64
	err = p.row(`SELECT verdict, owner, token, ends_in, position FROM S.ask($1, $2, '', $3, $4, 0, $5, $6, true, 0)`,
		[]any{[]byte(lock), owner, []byte(meta), micros(ttl), wait, barge}, &r.verdict, &name, &token, &left, &position)
	r.owner, r.token, r.left, r.position = name.String, token.Int64, time.Duration(left.Int64)*time.Microsecond, int(position.Int64)
	return r, err
}

func (p *procedures) renew(lock, owner string, ttl time.Duration) (bool, error) {
	var held string
	err := p.row(`SELECT held FROM S.renew($1, $2, $3, true)`, []any{hex.EncodeToString([]byte(lock)), owner, fmt.Sprint(micros(ttl))}, &held)
	return held != "f", err
}

func (p *procedures) release(lock, owner string, tomb time.Duration) (done bool, err error) {
	err = p.row(`SELECT done FROM S.release($1, $2, '', false, $3, false, 0)`, []any{[]byte(lock), owner, micros(tomb)}, &done)
	return done, err
}

// Look reads the rows, and demands that the procedures that only look say the same.
func (p *procedures) Look(lock string) (differential.State, error) {
	s := differential.State{Tombs: map[string]time.Duration{}}
	var owner sql.NullString
	var left, token sql.NullInt64
	err := p.row(`SELECT owner, ends - S.clock(), granted FROM S.locks WHERE name = $1 AND ends > S.clock()`, []any{[]byte(lock)}, &owner, &left, &token)
	if err != nil && err != sql.ErrNoRows {
		return s, err
	}
	if owner.Valid {
		s.Holder, s.Left, s.Token = owner.String, time.Duration(left.Int64)*time.Microsecond, uint64(token.Int64)
	}
	for _, query := range []string{`SELECT owner, ends_in, token FROM S.inspect($1, 10) WHERE position = 0`, `SELECT owner, ends_in, token FROM S.list($1, '', 10) WHERE name = $1`} {
		var seen string
		var in, tok int64
		switch err := p.row(query, []any{[]byte(lock)}, &seen, &in, &tok); {
		case err != nil && err != sql.ErrNoRows:
			return s, err
		case seen != owner.String || in != left.Int64 || tok != token.Int64:
			if owner.Valid || seen != "" {
				return s, fmt.Errorf("%s: %s for %d with %d, while there is %v", query, seen, in, tok, s)
			}
		}
	}
	rows, err := p.db.QueryContext(context.Background(), p.in(`SELECT owner, ends - S.clock() FROM S.tombs WHERE name = $1 AND ends > S.clock()`), []byte(lock))
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
		s.Tombs[owner] = time.Duration(left) * time.Microsecond
	}
	return s, rows.Err()
}
