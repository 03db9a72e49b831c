package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// defaultPersonDuration is short because a certificate cannot be taken back.
const defaultPersonDuration = 24 * time.Hour

// personFlags holds the flags of "bowsprit kubeconfig" for the kubeconfig of another user than the administrator.
type personFlags struct {
	user     string
	groups   []string
	duration time.Duration
	server   string
}

func (p personFlags) validate() error {
	switch {
	case p.user == "" && (len(p.groups) > 0 || p.duration != defaultPersonDuration || p.server != ""):
		return errors.New(
			"--group, --duration and --server need --user: name the user")
	case p.duration <= 0:
		return fmt.Errorf("--duration %s: must be positive, such as 24h", p.duration)
	case slices.Contains(p.groups, ""):
		return errors.New("--group: the name is empty")
	}
	if p.server == "" {
		return nil
	}
	u, err := url.Parse(p.server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return fmt.Errorf("--server %q is not the URL of a server, such as https://api.example.com:6443", p.server)
	}
	return nil
}

// kubeconfig makes a certificate with the authority in dataDir. It returns admin, the administrator's kubeconfig, with
// that certificate. Remarks for the user go to notes.
func (p personFlags) kubeconfig(dataDir string, admin []byte, notes io.Writer) ([]byte, error) {
	made, err := pki.PersonalKubeconfig(filepath.Join(dataDir, "pki"), admin, p.person(), time.Now())
	switch {
	case errors.Is(err, pki.ErrNoAuthority):
		return nil, fmt.Errorf("%w: start the server with \"bowsprit serve\", or name its directory with --data-dir",
			err)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig of user %s, valid for %s: %w", p.user, p.duration, err)
	}
	expires := made.Expires.UTC().Format(time.RFC3339)
	if slices.Contains(p.groups, "system:masters") {
		fmt.Fprintf(notes, "Warning: members of the group system:masters have every permission, and no role limits them. "+
			"Until %s only a new certificate authority can stop user %s.\n", expires, p.user)
	}
	if made.Mismatch {
		fmt.Fprintf(notes, "Warning: the server's certificate is not for the host of %s, so clients refuse it. Start "+
			"the server with that --bind-address, or with a certificate for the host by --tls-cert-file.\n", p.server)
	}
	fmt.Fprintf(notes, "The certificate of user %s expires at %s and cannot be revoked before. Roles determine the "+
		"user's permissions.\n", p.user, expires)
	return made.Kubeconfig, nil
}

func (p personFlags) person() pki.Person {
	return pki.Person{User: p.user, Groups: p.groups, Duration: p.duration, Server: p.server}
}

// userKubeconfig writes the kubeconfig of a person, as "bowsprit kubeconfig --user" does.
func userKubeconfig(out, notes io.Writer, dataDir string, p pki.Person) error {
	person := personFlags{user: p.User, groups: p.Groups, duration: p.Duration, server: p.Server}
	return showKubeconfig(out, notes, kubeconfigFlags{dataDir: dataDir, person: person})
}
