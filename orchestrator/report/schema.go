package report

import _ "embed" // schema.json

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of what --format json prints.
func Schema() []byte { return append([]byte(nil), schema...) }
