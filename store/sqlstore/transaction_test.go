package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/gate"
)

// recorder is a connection to a server that records its statements, and answers queries with
// answer.
type recorder struct {
	said   []string
	answer func(ctx context.Context) error
}

func (s *recorder) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *recorder) Driver() driver.Driver                        { return nil }
func (s *recorder) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s *recorder) say(what string)                              { s.said = append(s.said, what) }

func (s *recorder) Close() error {
	s.say("close")
	return nil
}

func (s *recorder) Begin() (driver.Tx, error) {
	return nil, errors.New("a transaction of package sql began")
}

func (s *recorder) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	s.say(text)
	return driver.ResultNoRows, nil
}

func (s *recorder) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	s.say(text)
	return noRows{}, s.answer(ctx)
}

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// A transaction of a call begins and ends with statements. After an error of the server the
// connection is kept, and after the end of the context it is closed, once.
func TestTransactions(t *testing.T) {
	full := errors.New("Error 1114 (HY000): the table is full")
	for _, c := range []struct {
		name   string
		answer func(ctx context.Context, end func()) error
		want   []string
		err    error
	}{
		{"done", func(context.Context, func()) error { return nil }, []string{"COMMIT"}, nil},
		{"refused", func(context.Context, func()) error { return full }, []string{"ROLLBACK"}, full},
		{"cancelled", func(ctx context.Context, end func()) error { end(); <-ctx.Done(); return ctx.Err() }, []string{"close"}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			s := &recorder{answer: func(ctx context.Context) error { return c.answer(ctx, end) }}
			db := sql.OpenDB(s)
			p := &pool{db: db}
			calls := &caller{engine: mysql{}, pool: p, o: Options{Timeout: DefaultTimeout}, gate: &gate.Gate{}}
			calls.explicit.Store(true)
			_, err := calls.callNow(ctx, plain("CALL p"), nil)
			if !errors.Is(err, c.err) {
				t.Errorf("the call returned %v, want %v", err, c.err)
			}
			want := append([]string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION", "CALL p"}, c.want...)
			if !slices.Equal(s.said, want) {
				t.Errorf("the server got %q, want %q", s.said, want)
			}
			db.Close()
		})
	}
}
