package filestore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// database is an SQL database, its lock tables, and how many may use it at once.
type database struct {
	db       *sql.DB
	d        Dialect
	meta     metaRow
	sessions sessions
	limit    time.Duration // of a request
	// writers and readers limit how many transactions run at once, askers how many
	// requests for a lock wait to be a writer.
	askers, writers, readers quota

	// own is set if the store opened db and must close it. No call on db then
	// blocks for long, and transactions are not interrupted: ctx only counts
	// while they wait to begin.
	own bool
	// intact checks that the database is still the one that was opened. single
	// checks that the file has no second name. If either fails, nothing is
	// granted.
	intact, single func() error
	// turnstile lets the processes take turns, or is nil.
	turnstile *turnstile
	// stays is a connection that only Close uses.
	stays *sql.Conn
}

// disconnect closes what the store has open in the database.
func (b *database) disconnect() error {
	err := b.sessions.close()
	if b.stays != nil {
		err = errors.Join(err, b.stays.Close())
		b.stays = nil
	}
	if b.own {
		err = errors.Join(err, b.db.Close())
	}
	return err
}

// moreTokens puts a new range of tokens on disk, n of which are wanted at once.
func (b *database) moreTokens(ctx context.Context, n int64) error {
	return b.d.durably(ctx, b.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, b.d.sql.reserve, n, b.tokenFloor(), tokenRange)
		return err
	})
}

// tokenRange is how far the range of tokens on disk reaches beyond the last
// granted token. Tokens follow the wall clock in microseconds, so this is a
// minute: a store in use waits for the disk once a minute, and after a reboot
// tokens are at most a minute ahead of the clock.
const tokenRange = int64(time.Minute / time.Microsecond)

// tokenFloor is the wall clock in microseconds. The last token of a grant is at
// least this. A clock that is set centuries ahead does not use up all tokens.
func (b *database) tokenFloor() int64 {
	const farthest = int64(fence.Max / 2)
	return min(b.d.wall().UnixMicro(), farthest)
}

// metaRow is what the tables say about themselves.
type metaRow struct {
	schema int
	origin string // random, chosen when the tables were made
	epoch  string // of the clock; see Dialect
}

func scanMeta(row *sql.Row) (m metaRow, err error) {
	err = row.Scan(&m.schema, &m.origin, &m.epoch)
	return m, err
}

// query is one of the statements of the steps.
type query int

const (
	qGet query = iota
	qPut
	qDrop
	qDraw
	qSweep
	qList
	countOfQueries
)

// of returns the text of a query.
func (s *statements) of(q query) string {
	return [countOfQueries]string{qGet: s.get, qPut: s.put, qDrop: s.drop, qDraw: s.draw, qSweep: s.sweep, qList: s.list}[q]
}
