package script

import (
	"fmt"
	"net/http"
	"strings"
)

// exchange is one request with its expected response.
type exchange struct {
	line                 int
	method, target, body string
	header               http.Header
	code, wantedBody     string // several codes are separated by spaces
	wantedHeader         http.Header
}

// parse reads a script. The error begins with the number of a line.
func parse(text string) ([]exchange, error) {
	var out []exchange
	line := 1
	for block := range strings.SplitSeq(text, "\n---\n") {
		at := line
		line += strings.Count(block, "\n") + 2
		for strings.HasPrefix(block, "#") || strings.HasPrefix(block, "\n") {
			_, block, _ = strings.Cut(block, "\n")
			at++
		}
		if strings.TrimSpace(block) == "" {
			continue
		}
		request, answer, ok := strings.Cut(block, "\n=> ")
		if !ok {
			return nil, fmt.Errorf("%d: no line with the expected status (=> 200)", at)
		}
		e := exchange{line: at}
		var first string
		first, e.header, e.body = split(request)
		if e.method, e.target, ok = strings.Cut(first, " "); !ok {
			return nil, fmt.Errorf("%d: %q is no METHOD and path", at, first)
		}
		first, e.wantedHeader, e.wantedBody = split(answer)
		e.code = first
		out = append(out, e)
	}
	return out, nil
}

// split returns the first line of a message, its headers and its body.
func split(message string) (first string, header http.Header, body string) {
	head, body, _ := strings.Cut(message+"\n", "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	header = http.Header{}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	return lines[0], header, strings.TrimSpace(body)
}
