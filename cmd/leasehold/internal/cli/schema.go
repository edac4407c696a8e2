package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

func schemaCommand(p *program) *cobra.Command {
	var show bool
	var roles []string
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
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.schema(c, show, roles) },
	}
	c.Flags().BoolVar(&show, "print", false, "print the SQL instead")
	c.Flags().StringArrayVar(&roles, "grant", nil, "let a `ROLE` use locks; can be repeated")
	return c
}

// schema runs "leasehold schema".
func (p *program) schema(c *cobra.Command, show bool, roles []string) error {
	if slices.Contains(roles, "") {
		return usage(c, "--grant is empty: give the name of a role")
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
	p.voice.Note("the table of locks is there")
	return nil
}
