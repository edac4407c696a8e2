package servers

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/leasehold-dev/leasehold/bench/floor"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// StartPostgreSQL starts one PostgreSQL that writes every commit to disk unless the
// commit asks for less, and installs what the implementations need in it.
func StartPostgreSQL(ctx context.Context) (*Server, error) {
	p, err := sqltest.LaunchPostgreSQL("fsync=on", "full_page_writes=on", "max_connections=400", "shared_buffers=128MB", "max_wal_size=1GB")
	if err != nil {
		return nil, &MissingError{"PostgreSQL", err.Error()}
	}
	s := &Server{Addr: p.Addr, PID: p.PID(), close: p.Close}
	s.url = func(addr string) string {
		return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", p.User, p.Password, addr, p.Database)
	}
	if err := s.install(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) install(ctx context.Context) error {
	db, err := sql.Open("pgx", s.URL(s.Addr))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "SHOW server_version").Scan(&s.Version); err != nil {
		return err
	}
	if err := sqlstore.Install(ctx, db, sqlstore.PostgreSQL, ""); err != nil {
		return err
	}
	return floor.InstallPostgreSQL(ctx, s.URL(s.Addr))
}
