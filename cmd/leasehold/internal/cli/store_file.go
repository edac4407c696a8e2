package cli

// The package knows how to open the URLs.
import _ "github.com/leasehold-dev/leasehold/store/filestore"

var fileScheme = scheme{
	names: []string{"file"},
	usage: "file, file:DIR, file:DIR?shared=true",
	help: `A folder of files, for locks between the processes of one machine. Without a
DIR it is a folder of your own, which other users do not share. The parent
of any other folder has to exist. A folder for several users has to be writable
by them and needs shared=true. In DIR write %25 for % and %3F for ?.`,
	single: true,
}
