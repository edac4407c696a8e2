package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command that is not hidden has a page in the format of man(7).
func TestWrite(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things", Long: "Does things.\n\n  first-form  a\\b\n.start of a line", Run: run}
	root.PersistentFlags().BoolP("quiet", "q", false, "print `LESS`")
	sub := &cobra.Command{Use: "do THING", Short: "Do one", Long: "Does one thing.", Example: "  tool do it", Run: run}
	sub.Flags().String("how", "", "the `WAY` to\n.do it")
	root.AddCommand(sub, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	dir := t.TempDir()
	if err := Write(dir, root, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tool.1": `.TH "TOOL" 1 "" "leasehold v1.2.3"
.SH NAME
tool \- does things
.SH SYNOPSIS
.B tool
.SH DESCRIPTION
Does things.
.PP
.nf
  first\-form  a\eb
.fi
\&.start of a line
.SH OPTIONS
.TP
\fB\-q\fR, \fB\-\-quiet\fR \fILESS\fR
print LESS
.SH SEE ALSO
.BR tool\-do (1)
`,
		"tool-do.1": `.TH "TOOL\-DO" 1 "" "leasehold v1.2.3"
.SH NAME
tool\-do \- do one
.SH SYNOPSIS
.B tool do THING [flags]
.SH DESCRIPTION
Does one thing.
.SH OPTIONS
.TP
\fB\-\-how\fR \fIWAY\fR
the WAY to
\&.do it
.SH GLOBAL OPTIONS
.TP
\fB\-q\fR, \fB\-\-quiet\fR \fILESS\fR
print LESS
.SH EXAMPLES
.nf
  tool do it
.fi
.SH SEE ALSO
.BR tool (1)
`,
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	if pages, _ := os.ReadDir(dir); len(pages) != 2 {
		t.Errorf("%d pages, want 2", len(pages))
	}
	if err := Write(filepath.Join(dir, "none"), root, ""); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("into a directory that does not exist: %v, want an error with %q", err, "none")
	}
}
