package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

func (p operator) schemaCommand() *cobra.Command {
	var show bool
	var roles []string // lists of them
	c := &cobra.Command{
		Use:   "schema --store postgres://...",
		Short: "Make the table of locks in a database",
		Long: `Makes in a database what locks there need: a schema (leasehold, or the one in the
URL) with one table. In MySQL and MariaDB, a schema is a database. Running it again
changes nothing. Locks that are held stay held.

The user in the URL must be allowed to create a schema, or own it. Programs that lock
should connect as another user, with no right but to read and change the rows of the
table: --grant gives it to a role, which in MySQL and MariaDB is a USER or USER@HOST.

With --print it prints the SQL and connects to nothing. Run it with a migration tool or
the client of the database.`,
		Example: `  leasehold schema --store postgres://owner@db/app --grant app
  leasehold schema --store postgres:///?schema=locks --print > 0042_locks.sql
  leasehold schema --store mysql:// --print | mysql --host db --user root`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "it takes no arguments")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.schema(c, show, roles) },
	}
	c.Flags().BoolVar(&show, "print", false, "print the SQL instead")
	c.Flags().StringArrayVar(&roles, "grant", nil, "let a `ROLE` use locks; separate several by commas, and put a name with\na comma in double quotes")
	return c
}

// schema runs "leasehold schema".
func (p operator) schema(c *cobra.Command, show bool, lists []string) error {
	var roles []string
	for _, list := range lists {
		some, ok := identifiers(list)
		if !ok {
			return usage(c, fmt.Sprintf("--grant %s: it is a list of names such as app,\"Night shift\"", list))
		}
		roles = append(roles, some...)
	}
	url, s, err := p.storeAsked(c)
	if err != nil {
		return err
	}
	if !slices.Contains(postgresqlScheme.names, s.names[0]) && !slices.Contains(mysqlScheme.names, s.names[0]) {
		return usage(c, "only a database has a schema: give --store postgres://... or mysql://...")
	}
	d, err := sqlstore.ParseURL(url)
	if err != nil {
		return err
	}
	if show {
		script, err := sqlstore.Script(d.Dialect, d.Options.Schema)
		if err != nil {
			return err
		}
		for _, role := range roles {
			grants, err := sqlstore.GrantScript(d.Dialect, d.Options.Schema, role)
			if err != nil {
				return err
			}
			script += "\n" + grants
		}
		_, err = fmt.Fprint(p.stdout, script)
		return err
	}
	db, err := d.OpenDB()
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sqlstore.Install(ctx, db, d.Dialect, d.Options.Schema, roles...); err != nil {
		return err
	}
	p.voice.note("the table of locks is there")
	return nil
}

// identifiers splits a list of names at its commas. A name may be in double quotes, as in
// SQL, and is taken as it is otherwise.
func identifiers(list string) (names []string, ok bool) {
	for {
		list = strings.TrimLeft(list, " ")
		var name string
		if rest, quoted := strings.CutPrefix(list, `"`); quoted {
			for {
				part, after, closed := strings.Cut(rest, `"`)
				if !closed {
					return nil, false
				}
				name += part
				if rest, quoted = strings.CutPrefix(after, `"`); !quoted {
					break
				}
				name += `"`
			}
			if list = strings.TrimLeft(rest, " "); list != "" && list[0] != ',' {
				return nil, false
			}
		} else {
			name, _, _ = strings.Cut(list, ",")
			list = list[len(name):]
			name = strings.TrimRight(name, " ")
		}
		if name == "" {
			return nil, false
		}
		names = append(names, name)
		if list == "" {
			return names, true
		}
		list = list[1:]
	}
}
