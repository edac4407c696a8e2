//go:build unix

package sqlstoretest

import (
	"database/sql"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// launchLimited starts a server that can write files of at most size bytes. Other servers
// must not be started meanwhile.
func launchLimited(t *testing.T, launch func(settings ...string) (*sqltest.Server, error), size uint64) *sqltest.Server {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	// A server that does not ignore the signal for a file that is too large would end.
	signal.Ignore(syscall.SIGXFSZ)
	server, err := launch()
	signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// A server whose disk is full grants no further lock, and the error says why. Leases stay, and can
// be renewed and released. The server grants locks again once there is room.
func TestDiskFull(t *testing.T) {
	full := map[string]fullDisk{
		postgres.name: {
			// A file of the log fits exactly. A page of a table fits in part only: the system then
			// writes less than the server asked for, as it does if the disk is full.
			on: postgres.at(launchLimited(t, sqltest.LaunchPostgreSQL, 16<<20+4<<10)),
			insert: `INSERT INTO S.records (k, version, holder, idle, written, v)
				SELECT $1 || n, 1, '', true, 0, decode(repeat(md5(n::text), $2), 'hex') FROM generate_series(1, $3) n`,
			says: "53100",
			room: []string{`DELETE FROM S.records WHERE starts_with(k, 'filler')`, `VACUUM S.records`},
		},
	}
	for _, on := range mysqls {
		// The first files fit in: those of MySQL are larger, and it has no file for each table.
		size, settings := uint64(16<<20), []string(nil)
		if on == mysql {
			size, settings = 28<<20, []string{"skip-log-bin", "innodb-redo-log-capacity=8M"}
		}
		launch := func(...string) (*sqltest.Server, error) { return on.launch(settings...) }
		full[on.name] = fullDisk{
			on: on.at(launchLimited(t, launch, size)),
			insert: `INSERT INTO S.records (k, version, holder, idle, written, v)
				WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 1000) SELECT CONCAT(?, n), 1, '', TRUE, 0, REPEAT(LPAD(n, 32, '-'), ?) FROM s WHERE n <= ?`,
			says: "1114",
			room: []string{`DELETE FROM S.records WHERE k LIKE 'filler%'`},
		}
	}
	t.Parallel() // from here on
	for name, one := range full {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one.test(t)
		})
	}
}

// fullDisk is a server that can write little.
type fullDisk struct {
	on     *bed
	insert string   // inserts rows whose names begin with an argument; the others are their size and number
	says   string   // the code of the error for a full disk
	room   []string // delete these rows
}

func (f fullDisk) test(t *testing.T) {
	on := f.on
	schema := on.newSchema(t)
	s := on.open(t, schema, sqlstore.Options{})
	l := lease("held")
	g := mustAcquire(t, s, l)
	db := on.handle(t)
	// Room that a failed insert has left can be used by smaller ones.
	for stage, rows := range []struct{ n, size int }{{1000, 60}, {1000, 1}, {100, 1}, {10, 1}, {1, 1}} {
		f.fill(t, db, schema, stage, rows.n, rows.size)
	}
	refused := 0
	for i := range 5000 { // a failed insert may have left room for so many
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(fmt.Sprint("new ", i))})
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "disk is full") || errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("acquire while the disk is full: %v, want an error that says so", err)
		}
		if refused++; refused == 3 {
			break
		}
	}
	if refused == 0 {
		t.Error("locks are granted while the disk is full")
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew while the disk is full: %v", err)
	}
	if st := inspect(t, s, "held"); st.Holder.Owner != l.Owner || st.Token != g.Token {
		t.Errorf("inspect while the disk is full: %+v, want the holder %s with token %v", st, l.Owner, g.Token)
	}
	mustRelease(t, s, l)
	for _, query := range f.room {
		on.exec(t, db, schema, query)
	}
	for i := range 3 {
		l := lease(fmt.Sprint("there is room again ", i))
		untilRoom(t, "a lock is granted", func() error {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
			return err
		})
		untilRoom(t, "the lock is released", func() error {
			return s.Release(t.Context(), store.ReleaseRequest{Lease: l})
		})
	}
}

// untilRoom repeats do as long as the disk is full: InnoDB frees room in the background, and
// each step can need some more.
func untilRoom(t *testing.T, what string, do func() error) {
	t.Helper()
	eventually.True(t, what, func() bool {
		err := do()
		if err != nil && !strings.Contains(err.Error(), "disk is full") {
			t.Fatal(err)
		}
		return err == nil
	})
}

// fill inserts rows, n at once, until the server says that the disk is full.
func (f fullDisk) fill(t *testing.T, db *sql.DB, schema string, stage, n, size int) {
	t.Helper()
	for i := range 100_000 {
		_, err := db.ExecContext(t.Context(), f.on.in(schema, f.insert), fmt.Sprintf("filler %d %d ", stage, i), size, n)
		switch {
		case err == nil:
		case strings.Contains(err.Error(), f.says):
			return
		default:
			t.Fatal(err)
		}
	}
	t.Fatal("the disk is not full after 100000 inserts")
}
