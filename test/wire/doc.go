// Package wire sends requests that are written down as text and compares the answers with the text.
//
// A script in testdata is a list of exchanges with one server, in a namespace of its own. An exchange is a request as
// HTTP has it (a line, headers, an empty line, a body), a line with the expected status, expected headers, an empty
// line and the expected body; a line of three dashes ends it:
//
//	# what this is about
//	POST /api/v1/namespaces/$NS/configmaps
//
//	{"metadata":{"name":"one"},"data":{"a":"b"}}
//	=> 201
//	Content-Type: application/json
//
//	{"kind":"ConfigMap","metadata":{"name":"one","uid":"$UID","...":""},"...":""}
//	---
//
// A body is compared as JSON: a field that is not expected is a difference, unless the object has the field "...". The
// string "$any" is any value that is not null. Any other string of a dollar and capital letters is a variable: it takes
// the value that it meets first, stands for that value from there on, and is replaced in requests. A watch answers with
// several documents, one after another; "..." as the last one lets others follow. A body that does not begin with { or
// [ is compared as text, of which "$any" leaves out the rest of a line. `go test -run 'TestScripts/create' -v
// ./test/wire` shows what was answered.
package wire
