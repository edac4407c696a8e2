package sqlguard

import (
	"context"
	"database/sql"

	"github.com/leasehold-dev/leasehold/fence"
)

// Memory is the guard's table as a memory alone, for a resource that is not in
// the database: it judges and remembers, and protects no write. It is what
// httpguard.Options take.
func (g *Guard) Memory(db Beginner) *Memory { return &Memory{g, db} }

// Memory remembers tokens in a database.
type Memory struct {
	g  *Guard
	db Beginner
}

// Admit judges the token and remembers it: on nil, that is committed. Errors are
// those of Guard.Tx.
func (m *Memory) Admit(ctx context.Context, resource string, token fence.Token) error {
	return m.g.Tx(ctx, m.db, resource, token, func(*sql.Tx) error { return nil })
}
