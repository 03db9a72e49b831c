package authn

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Tokens holds the users of a token file. Nil accepts no token.
type Tokens struct{ users map[string]user.Info }

// LoadTokens reads a file of lines `token,user name,user uid,"group1,group2"` (CSV; the groups are optional), like
// kube-apiserver's --token-auth-file. Empty tokens are ignored, and the last of equal ones counts; both are logged.
func LoadTokens(file string, log *slog.Logger) (*Tokens, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	t, err := readTokens(f, log)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", file, err)
	}
	return t, nil
}

func readTokens(r io.Reader, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{users: map[string]user.Info{}}
	reader := csv.NewReader(r)
	reader.FieldsPerRecord = -1
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		if len(record) < 3 {
			return nil,
				fmt.Errorf("line %d must have at least 3 columns (token, user name, user uid), found %d", line,
					len(record))
		}
		token, name, uid := record[0], record[1], record[2]
		if token == "" {
			log.Warn("ignoring an empty token", "line", line)
			continue
		}
		if t.users[token] != nil {
			log.Warn("a token occurs twice; the last line counts", "line", line)
		}
		var groups []string
		if len(record) >= 4 {
			groups = strings.Split(record[3], ",")
		}
		t.users[token] = &user.DefaultInfo{Name: name, UID: uid, Groups: authenticated(name, groups)}
	}
}

// user returns the user of a token, or nil.
func (t *Tokens) user(token string) user.Info {
	if t == nil {
		return nil
	}
	return t.users[token]
}
