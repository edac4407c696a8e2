package floor

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

//go:embed postgresql.sql
var postgresqlScript string

// InstallPostgreSQL installs the procedures of PostgreSQL clients in a database.
func InstallPostgreSQL(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, postgresqlScript, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

// PostgreSQL is a client of locks in PostgreSQL by hand, or of the server's advisory
// locks. Each lock has a connection of its own.
type PostgreSQL struct {
	url      string
	settings map[string]string
	advisory bool
	links    []*link
}

// OpenPostgreSQL returns a client. Unless durable is set, nothing waits for the disk.
func OpenPostgreSQL(url string, durable bool) *PostgreSQL {
	p := &PostgreSQL{url: url}
	if !durable {
		p.settings = map[string]string{"synchronous_commit": "off"}
	}
	return p
}

// OpenAdvisory returns a client that uses pg_advisory_lock.
func OpenAdvisory(url string) *PostgreSQL { return &PostgreSQL{url: url, advisory: true} }

// Close closes the connections.
func (p *PostgreSQL) Close() {
	for _, l := range p.links {
		if l.conn != nil {
			l.conn.Close(context.Background())
		}
	}
}

// Pair returns the lock of that name.
func (p *PostgreSQL) Pair(name string) load.Pair {
	l := &link{p: p}
	p.links = append(p.links, l)
	if p.advisory {
		h := fnv.New64a()
		h.Write([]byte(name))
		return &advisoryPair{l, int64(h.Sum64())}
	}
	return &rowPair{link: l, name: name, prefix: rand.Text()}
}

// link is a connection that is made when it is needed.
type link struct {
	p    *PostgreSQL
	conn *pgx.Conn
}

// query makes a query whose only row is scanned. The driver closes the connection if ctx
// ends meanwhile.
func (l *link) query(ctx context.Context, query string, args []any, into ...any) error {
	if l.conn == nil || l.conn.IsClosed() {
		config, err := pgx.ParseConfig(l.p.url)
		if err != nil {
			return err
		}
		for name, value := range l.p.settings {
			config.RuntimeParams[name] = value
		}
		if l.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			return err
		}
	}
	return l.conn.QueryRow(ctx, query, args...).Scan(into...)
}

type advisoryPair struct {
	*link
	key int64
}

func (p *advisoryPair) Lock(ctx context.Context) error {
	return p.query(ctx, "SELECT pg_advisory_lock($1) IS NULL", []any{p.key}, nil)
}

func (p *advisoryPair) Unlock(ctx context.Context) error {
	return p.query(ctx, "SELECT pg_advisory_unlock($1)", []any{p.key}, nil)
}

type rowPair struct {
	*link
	name, prefix string
	owner        string
	count        uint64
	signal       int64
}

// signal returns a positive number that nobody else uses.
func signal() int64 {
	b := make([]byte, 8)
	rand.Read(b)
	return int64(binary.LittleEndian.Uint64(b)>>1) | 1
}

func (p *rowPair) Lock(ctx context.Context) error {
	p.count++
	p.signal = signal() // one that is used again could be waited for by a waiter of the last turn
	p.owner = p.prefix + strconv.FormatUint(p.count, 36)
	var token, before *int64
	err := p.query(ctx, "SELECT token, before FROM floor.ask($1, $2, $3, interval '30 s')", []any{p.name, p.owner, p.signal}, &token, &before)
	for err == nil && token == nil {
		err = p.query(ctx, "SELECT floor.await($1, $2, $3)", []any{p.name, p.owner, before}, &token)
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, p.query(context.WithoutCancel(ctx), "SELECT floor.leave($1, $2)", []any{p.name, p.owner}, nil))
	}
	return err
}

func (p *rowPair) Unlock(ctx context.Context) error {
	var done bool
	err := p.query(ctx, "SELECT floor.release($1, $2, $3)", []any{p.name, p.owner, p.signal}, &done)
	if err == nil && !done {
		err = errTaken
	}
	return err
}
