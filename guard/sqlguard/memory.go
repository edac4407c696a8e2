package sqlguard

import (
	"context"
	"database/sql"

	"github.com/leasehold-dev/leasehold/fence"
)

// Memory returns a Memory that uses the guard's table.
func (g *Guard) Memory(db MemoryDB) *Memory { return &Memory{g, db} }

// MemoryDB is the part of *sql.DB and *sql.Conn that a Memory uses.
type MemoryDB interface {
	Beginner
	Queryer
}

// Memory remembers tokens in a database, for a resource that is not in that
// database. It protects no write. It implements httpguard.Memory.
type Memory struct {
	g  *Guard
	db MemoryDB
}

// Highest returns the largest committed token of the resource, or zero if there is none.
func (m *Memory) Highest(ctx context.Context, resource string) (fence.Token, error) {
	return m.g.Highest(ctx, m.db, resource)
}

// Admit checks the token and remembers it. If it returns nil, the token is
// committed. The errors are those of Guard.Tx.
func (m *Memory) Admit(ctx context.Context, resource string, token fence.Token) error {
	return m.g.Tx(ctx, m.db, resource, token, func(*sql.Tx) error { return nil })
}
