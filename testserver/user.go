package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// User is a user of a server, with a client certificate.
type User struct {
	config *rest.Config
	file   string
}

// User returns a user with this name and these groups. The user has the permissions that bindings grant to the name and
// the groups, besides the permissions of every authenticated user. Members of the group "system:masters" may do
// everything.
func (s *Server) User(name string, groups ...string) (*User, error) {
	kubeconfig, err := s.server.UserKubeconfig(name, groups...)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	config.QPS = -1 // no limit, as for the administrator
	dir, err := s.temporary()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	return &User{config, file}, nil
}

// RESTConfig returns the user's client configuration, with no limit on the rate of requests. The caller owns it.
func (u *User) RESTConfig() *rest.Config { return rest.CopyConfig(u.config) }

// Kubeconfig returns a file with the same credentials. The server removes it when it stops.
func (u *User) Kubeconfig() string { return u.file }

// Kubectl is Server.Kubectl with the rights of the user.
func (u *User) Kubectl(args ...string) *exec.Cmd { return kubectl(u.file, args) }

// Kubectl returns a command that runs kubectl against the server, with the rights of an administrator. The program is
// kubectl in PATH, or else "bowsprit kubectl". Without either, the command fails with an error that names both.
func (s *Server) Kubectl(args ...string) *exec.Cmd { return kubectl(s.Kubeconfig(), args) }

func kubectl(kubeconfig string, args []string) *exec.Cmd {
	cmd := exec.Command("kubectl", args...)
	if cmd.Err != nil {
		if own := exec.Command("bowsprit", append([]string{"kubectl"}, args...)...); own.Err == nil {
			cmd = own
		} else {
			cmd.Err = fmt.Errorf("testserver: %w; %w: install one of them, or add its directory to PATH", cmd.Err, own.Err)
		}
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}
