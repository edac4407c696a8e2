package sqlstore

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// postgresql is the engine of PostgreSQL.
type postgresql struct{}

//go:embed postgresql/begin.sql
var pgBegin string

//go:embed postgresql/tables.sql
var pgTables string

//go:embed postgresql/steps.sql
var pgSteps string

//go:embed postgresql/kinds.sql
var pgKinds string

//go:embed postgresql/procedures.sql
var pgProcedures string

//go:embed postgresql/batch.sql
var pgBatch string

//go:embed postgresql/end.sql
var pgEnd string

func (postgresql) name() string { return "PostgreSQL" }

func (postgresql) id() string { return "postgresql" }

func (postgresql) batches() bool { return true }

func (postgresql) patient() bool { return true }

func (postgresql) begin() []string { return []string{"BEGIN ISOLATION LEVEL READ COMMITTED"} }

func (postgresql) session() string { return "SELECT pg_backend_pid()" }

func (postgresql) ends() string {
	return "SELECT pg_catalog.host(pg_catalog.inet_client_addr()), pg_catalog.inet_client_port(), pg_catalog.host(pg_catalog.inet_server_addr()), pg_catalog.inet_server_port()"
}

// procedure implements engine: a SELECT with marks for the arguments.
func (postgresql) procedure(schema, name, columns string, args int) statement {
	marks := make([]string, args)
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	list := strings.Split(columns, ", ")
	for i, column := range list {
		switch column {
		case "name", "meta":
			// Bytes are returned in hexadecimal. The driver's own reading of them
			// depends on bytea_output.
			list[i] = "pg_catalog.encode(" + column + ", 'hex')"
		case "position":
			list[i] = `"position"`
		}
	}
	text := "SELECT " + strings.Join(list, ", ") + " FROM " + schema + "." + name + "(" + strings.Join(marks, ",") + ")"
	return func(args []any) (string, []any) { return text, args }
}

func (postgresql) script() string {
	return pgBegin + "\n" + pgTables + "\n" + pgSteps + "\n" + pgKinds + "\n" + pgProcedures + "\n" + pgBatch + "\n" + pgEnd
}

// called are the procedures that a store calls.
var called = []string{"ask", "await", "release", "release_and_rejoin", "renew", "take_signal", "reserve", "break_lease", "inspect", "list", "hold", "sweep", "longest_ttl", "server",
	"ask_kind", "await_kind", "release_kind", "renew_kind", "reserve_kind", "downgrade", "resize", "batch"}

func (postgresql) grants(schema, role string) ([]string, error) {
	role = `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
	all := []string{fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", schema, role)}
	for _, p := range called {
		all = append(all, fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s.%s TO %s;", schema, p, role))
	}
	return all, nil
}

// whole implements engine.
func (postgresql) whole(script string) string { return script }

// statements implements engine: it splits at the semicolons that end statements, not
// at those in comments and between $$.
func (postgresql) statements(script string) []string {
	var all []string
	var b strings.Builder
	body := false
	for line := range strings.Lines(script) {
		if !body && strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		if strings.Count(line, "$$")%2 == 1 {
			body = !body
		}
		b.WriteString(line)
		code, _, _ := strings.Cut(line, " -- ")
		if !body && strings.HasSuffix(strings.TrimSpace(code), ";") {
			all = append(all, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	return all
}
