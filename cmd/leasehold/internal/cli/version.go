package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
)

// build describes what this program was built from.
type build struct {
	Version  string // of the module; "(devel)" when built from a work tree
	Revision string // of the repository, if the build knew it
	Time     string // of that revision, RFC 3339
	Modified bool   // the work tree differed from it
	Go       string
	OS       string
	Arch     string
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
