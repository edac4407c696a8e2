package cli

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build describes what this program was built from.
type build struct {
	Version  string `json:"version"`            // of the module; "(devel)" when built from a work tree
	Revision string `json:"revision,omitempty"` // of the repository, if the build knew it
	Time     string `json:"time,omitempty"`     // of that revision, RFC 3339
	Modified bool   `json:"modified"`           // the work tree differed from it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// released is the version of a release. The build of packages sets it; elsewhere the
// version of the module is what is known.
var released string

// pseudo is the version of a module at a commit that has none.
var pseudo = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(\+.*)?$`)

func thisBuild() build {
	b := build{Version: "(unknown)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	if released != "" {
		b.Version = released
	}
	if at := pseudo.FindStringSubmatch(info.Main.Version); at != nil {
		b.Revision = at[1] // of a module that was fetched: the build knows no repository
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// line describes the build for people.
func (b build) line() string {
	commit := "unknown commit"
	if b.Revision != "" {
		commit = "commit " + b.Revision
		if b.Modified {
			commit += " (modified)"
		}
	}
	return fmt.Sprintf("leasehold %s, %s, %s %s/%s\n", b.Version, commit, b.Go, b.OS, b.Arch)
}

func (p *program) versionCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Long: `Shows the version of this program, the commit it was built from if that is known,
and the version of Go.

With --json it prints an object with version, revision, time, modified (whether the
sources had changes on top of the revision), go, os and arch.`,
		Example: "  leasehold version --json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "it takes no arguments")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return writeJSON(p.stdout, b)
			}
			_, err := io.WriteString(p.stdout, b.line())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
