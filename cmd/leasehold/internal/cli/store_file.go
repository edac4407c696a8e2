package cli

// The package knows how to open the URLs.
import _ "github.com/leasehold-dev/leasehold/store/filestore"

var fileScheme = scheme{
	names: []string{"file"},
	usage: "file, file:PATH, file:PATH?shared=true",
	help: `An SQLite file, for locks between the processes of one machine. Without a
PATH it is a file of your own, which other users do not share. The directory
of any other file has to exist. A file for several users has to be writable
by them and needs shared=true. In PATH write %25 for % and %3F for ?.`,
	single: true,
}
