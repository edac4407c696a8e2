package filestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
)

// session is a connection on which steps run, with the statements that they have used, prepared.
// Steps call the driver itself: database/sql starts a goroutine for each transaction and another for
// each query in it, to wait for the end of a context, and looks for each statement's connection.
type session struct {
	conn  *sql.Conn
	stmts [countOfQueries]driver.Stmt
}

// sessions are the sessions that no step uses. The zero value is ready for use.
type sessions struct {
	mu     sync.Mutex
	idle   []*session // the one that was used last is the last
	closed bool
}

// take returns an idle session, or nil.
func (p *sessions) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	s := p.idle[last]
	p.idle = p.idle[:last]
	return s
}

// put keeps s for another step. It returns false after close.
func (p *sessions) put(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.idle = append(p.idle, s)
	return true
}

// close ends the idle sessions. Others end with their step. It may be called twice.
func (p *sessions) close() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	var errs []error
	for _, s := range idle {
		errs = append(errs, s.end())
	}
	return errors.Join(errs...)
}

// end returns the connection to the handle of the database.
func (s *session) end() error {
	err := s.conn.Raw(func(any) error { return s.finalize() })
	if errors.Is(err, sql.ErrConnDone) {
		return nil // the handle has dropped the connection
	}
	return errors.Join(err, s.conn.Close())
}

// finalize closes the statements. SQLite keeps a connection that is closed, and its locks, while it
// has statements. It is called within Raw.
func (s *session) finalize() error {
	var errs []error
	for i, q := range s.stmts {
		if q != nil {
			errs = append(errs, q.Close())
			s.stmts[i] = nil
		}
	}
	return errors.Join(errs...)
}

// session returns a session for a step.
func (b *database) session(ctx context.Context) (*session, error) {
	if s := b.sessions.take(); s != nil {
		return s, nil
	}
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn}, nil
}

// transact calls work in a transaction, and commits it if work returns true. maybe is set if the
// commit failed, in which case it may have taken effect.
func (b *database) transact(ctx context.Context, readOnly bool, work func(*transaction) (commit bool, err error)) (maybe bool, err error) {
	s, err := b.session(ctx)
	if err != nil {
		return false, err
	}
	sound := false
	defer func() { // also if work panics
		// A handle of the caller's gets its connection back. A connection that had an error may be
		// broken, which the handle finds out.
		if !sound || !b.own || !b.sessions.put(s) {
			if e := s.end(); e != nil && err != nil { // a step that was committed has not failed
				err = errors.Join(err, e)
			}
		}
	}()
	gone := s.conn.Raw(func(c any) (broken error) {
		returned := false
		defer func() {
			if !returned || broken != nil { // the handle drops the connection
				_ = s.finalize()
			}
		}()
		maybe, broken, err = b.transactOn(ctx, c, s, readOnly, work)
		returned = true
		return broken
	})
	if gone != nil && err == nil {
		err = gone
	}
	sound = gone == nil && (err == nil || b.d.again(err))
	return maybe, err
}

// transactOn is transact on the connection c of s. broken is set if the connection cannot be used
// any more.
func (b *database) transactOn(ctx context.Context, c any, s *session, readOnly bool, work func(*transaction) (commit bool, err error)) (maybe bool, broken, err error) {
	conn, ok := c.(interface {
		driver.ConnBeginTx
		driver.ConnPrepareContext
	})
	if !ok {
		return false, nil, fmt.Errorf("the driver's connections (%T) lack methods that take a context", c)
	}
	tx, err := conn.BeginTx(ctx, driver.TxOptions{ReadOnly: readOnly})
	if err != nil {
		return false, nil, err
	}
	over := false
	defer func() {
		if !over && tx.Rollback() != nil {
			broken = driver.ErrBadConn
		}
	}()
	commit, err := work(&transaction{ctx, conn, s, &b.d.sql})
	if err == nil && commit {
		err = ctx.Err()
	}
	if err != nil || !commit {
		return false, nil, err
	}
	over = true // a commit that fails rolls back
	err = tx.Commit()
	return err != nil, nil, err
}

// transaction is a transaction in progress.
type transaction struct {
	ctx  context.Context
	conn driver.ConnPrepareContext
	s    *session
	sql  *statements
}

// stmt returns the statement of a query, prepared.
func (t *transaction) stmt(q query) (stmt, error) {
	if t.s.stmts[q] == nil {
		s, err := t.conn.PrepareContext(t.ctx, t.sql.of(q))
		if err != nil {
			return nil, err
		}
		t.s.stmts[q] = s
	}
	s, ok := t.s.stmts[q].(stmt)
	if !ok {
		return nil, fmt.Errorf("the driver's statements (%T) lack methods that take a context", t.s.stmts[q])
	}
	return s, nil
}

type stmt interface {
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (t *transaction) exec(q query, args ...driver.Value) error {
	s, err := t.stmt(q)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(t.ctx, ordered(args))
	return err
}

// query calls each for every row. The values are those of the driver, and each must not keep them.
func (t *transaction) query(q query, each func(row []driver.Value) error, args ...driver.Value) error {
	s, err := t.stmt(q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, ordered(args))
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		if err = rows.Next(row); err == nil {
			err = each(row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

func ordered(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
