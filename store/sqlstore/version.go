package sqlstore

// SchemaVersion is the version of the tables and procedures.
const SchemaVersion = 9

// oldestVersion is the oldest version of this package that can use the tables. A
// change that older programs can live with raises only SchemaVersion.
const oldestVersion = 2
