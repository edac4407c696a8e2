package guardtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/httpguard"
	"github.com/leasehold-dev/leasehold/guard/redisguard"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// goods describe the data that a lock protects, so that another process can find it, too.
// It is one text, to which every writer adds its name.
type goods struct {
	Kind    string // which guard, used how
	Dialect sqlguard.Dialect
	Driver  string
	Source  string // data source name, address or URL
	Name    string // of the table or key
}

// writer is a holder that writes.
type writer struct {
	token   fence.Token
	guarded bool
	name    string
}

// data are opened goods.
type data interface {
	// begin is the first thing a holder does with its lease. It returns what it has read.
	begin(context.Context, writer) (string, error)
	// write writes what was read, and the writer's name.
	write(ctx context.Context, w writer, before string) error
	read(context.Context) (string, error)
	close()
}

func (g goods) open() (data, error) {
	switch kind, how, _ := strings.Cut(g.Kind, " "); kind {
	case "sql":
		db, err := sql.Open(g.Driver, g.Source)
		if err != nil {
			return nil, err
		}
		guard, err := sqlguard.New(g.Dialect, &sqlguard.Options{Table: g.Name + "_fences"})
		return &sqlGoods{goods: g, how: how, db: db, guard: guard}, err
	case "redis":
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{g.Source}, DisableCache: true, ForceSingleClient: true})
		if err != nil {
			return nil, err
		}
		guard, err := redisguard.New(rueidisEval(client), nil)
		return &redisGoods{goods: g, how: how, client: client, guard: guard}, err
	case "http":
		return &httpGoods{g}, nil
	}
	return nil, fmt.Errorf("no goods of kind %q", g.Kind)
}

type sqlGoods struct {
	goods
	how   string
	db    *sql.DB
	guard *sqlguard.Guard
}

// create makes the table with the one row.
func (g *sqlGoods) create(ctx context.Context) error {
	_, err := g.db.ExecContext(ctx, `CREATE TABLE `+g.Name+` (id INT PRIMARY KEY, content VARCHAR(100) NOT NULL, token BIGINT)`)
	if err != nil {
		return err
	}
	_, err = g.db.ExecContext(ctx, `INSERT INTO `+g.Name+` (id, content) VALUES (1, '')`)
	return errors.Join(err, g.guard.CreateTable(ctx, g.db))
}

func (g *sqlGoods) row() sqlguard.Row {
	return sqlguard.Row{Table: g.Name, Key: map[string]any{"id": 1}, Column: "token"}
}

func (g *sqlGoods) begin(ctx context.Context, _ writer) (string, error) { return g.read(ctx) }

func (g *sqlGoods) write(ctx context.Context, w writer, before string) error {
	set := rebind(g.Dialect, "content = ?")
	switch {
	case !w.guarded:
		return g.update(ctx, g.db, before+w.name)
	case g.how == "row":
		return g.Dialect.UpdateRow(ctx, g.db, g.row(), w.token, set, before+w.name)
	}
	return g.guard.Tx(ctx, g.db, "goods", w.token, func(tx *sql.Tx) error { return g.update(ctx, tx, before+w.name) })
}

// change reads, calls think, and writes in one guarded transaction.
func (g *sqlGoods) change(ctx context.Context, w writer, think func()) error {
	return g.guard.Tx(ctx, g.db, "goods", w.token, func(tx *sql.Tx) error {
		before, err := g.readFrom(ctx, tx)
		if err != nil {
			return err
		}
		think()
		return g.update(ctx, tx, before+w.name)
	})
}

func (g *sqlGoods) update(ctx context.Context, db sqlguard.Execer, content string) error {
	_, err := db.ExecContext(ctx, rebind(g.Dialect, `UPDATE `+g.Name+` SET content = ? WHERE id = 1`), content)
	return err
}

func (g *sqlGoods) read(ctx context.Context) (string, error) { return g.readFrom(ctx, g.db) }

func (g *sqlGoods) readFrom(ctx context.Context, db sqlguard.Queryer) (content string, err error) {
	err = db.QueryRowContext(ctx, `SELECT content FROM `+g.Name+` WHERE id = 1`).Scan(&content)
	return content, err
}

func (g *sqlGoods) close() { g.db.Close() }

type redisGoods struct {
	goods
	how    string
	client rueidis.Client
	guard  *redisguard.Guard
}

func (g *redisGoods) begin(ctx context.Context, _ writer) (string, error) { return g.read(ctx) }

func (g *redisGoods) read(ctx context.Context) (string, error) {
	content, err := g.client.Do(ctx, g.client.B().Get().Key(g.Name).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return content, err
}

const appendScript = `redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2])`

func (g *redisGoods) write(ctx context.Context, w writer, before string) error {
	how := g.how
	if how == "delete" && w.name != "A" {
		how = "set" // or no write of the other could be lost
	}
	switch {
	case how == "delete" && w.guarded:
		return g.guard.Delete(ctx, g.Name, w.token)
	case how == "delete":
		return g.client.Do(ctx, g.client.B().Del().Key(g.Name).Build()).Error()
	case how == "script" && w.guarded:
		_, err := g.guard.Run(ctx, appendScript, g.Name, w.token, []string{g.Name}, []string{before, w.name})
		return err
	case w.guarded:
		return g.guard.Set(ctx, g.Name, before+w.name, w.token, 0)
	}
	return g.client.Do(ctx, g.client.B().Set().Key(g.Name).Value(before+w.name).Build()).Error()
}

func (g *redisGoods) close() { g.client.Close() }

type httpGoods struct{ goods }

func (g *httpGoods) close() {}

func (g *httpGoods) begin(ctx context.Context, _ writer) (string, error) { return g.read(ctx) }

func (g *httpGoods) read(ctx context.Context) (string, error) {
	return g.send(ctx, http.MethodGet, nil)
}

func (g *httpGoods) write(ctx context.Context, w writer, before string) error {
	_, err := g.send(httpguard.WithToken(ctx, w.token), http.MethodPut, strings.NewReader(before+w.name))
	return err
}

func (g *httpGoods) send(ctx context.Context, method string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, g.Source, body)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &httpguard.Transport{}}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := httpguard.Check(resp); err != nil {
		return "", err
	}
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, content)
	}
	return string(content), err
}
