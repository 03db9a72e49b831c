package aspod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// maxAll bounds the file of --all, and maxPrograms its programs.
const (
	maxAll      = 64 << 10
	maxPrograms = 50
)

// entry is a line of the file of --all: a program, and the arguments of the command that runs it.
type entry struct {
	name string
	args []string // after "bowsprit run"
}

// entryName is the form of names.
var entryName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// readAll reads the file of --all. Each line is "NAME: WORKLOAD [FLAG...] -- PROGRAM [ARGUMENT...]"; empty lines and
// lines that begin with # are left out.
func readAll(file string) (all []entry, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAll+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxAll:
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxAll)
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := parseEntry(line)
		if err == nil && slices.ContainsFunc(all, func(o entry) bool { return o.name == e.name }) {
			err = fmt.Errorf("the name %s is there already", e.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		all = append(all, e)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s names no program: use lines such as manager: deployment/manager -- ./manager", file)
	case len(all) > maxPrograms:
		return nil, fmt.Errorf("%s names %d programs, more than %d", file, len(all), maxPrograms)
	}
	return all, nil
}

func parseEntry(line string) (entry, error) {
	name, rest, found := strings.Cut(line, ":")
	if !found || !entryName.MatchString(name) {
		return entry{}, errors.New("no program: use NAME: WORKLOAD [FLAG...] -- PROGRAM [ARGUMENT...]")
	}
	words, err := split(rest)
	if err != nil {
		return entry{}, err
	}
	end := slices.Index(words, "--")
	if end < 1 || end == len(words)-1 {
		return entry{}, errors.New("no program: use NAME: WORKLOAD [FLAG...] -- PROGRAM [ARGUMENT...]")
	}
	if _, err := parseTarget(words[0]); err != nil {
		return entry{}, err
	}
	for _, word := range words[1:end] {
		if flag, _, _ := strings.Cut(word, "="); flag == "--all" || flag == "--as-pod" {
			return entry{}, fmt.Errorf("%s belongs to the command line, not to the file", flag)
		}
	}
	return entry{name: name, args: append([]string{"--as-pod=" + words[0]}, words[1:]...)}, nil
}

// split divides a line into words, as a shell does with quotes and backslashes. Nothing is expanded.
func split(line string) (words []string, err error) {
	var word []byte
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quote != '\'':
			if i++; i == len(line) {
				return nil, errors.New("a backslash ends the line")
			}
			word, in = append(word, line[i]), true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, string(word))
			}
			word, in = nil, false
		default:
			word, in = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c has no end", quote)
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}
