package testserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestUser checks the identity and the rights of a user, by the configuration and by the file.
func TestUser(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*bowsprit.Config){
		"ephemeral": func(*bowsprit.Config) {},
		"data": func(c *bowsprit.Config) {
			c.Ephemeral, c.DataDir, c.Kubeconfig = false, t.TempDir(), filepath.Join(t.TempDir(), "own")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t, configure)
			alice, err := server.User("alice", "dev", "ops")
			if err != nil {
				t.Fatal(err)
			}
			fromFile, err := clientcmd.BuildConfigFromFlags("", alice.Kubeconfig())
			if err != nil {
				t.Fatal(err)
			}
			for _, config := range []*rest.Config{alice.RESTConfig(), fromFile} {
				checkUser(t, config)
			}
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(alice.Kubeconfig()); err == nil {
				t.Error("the stopped server has left the user's kubeconfig")
			}
		})
	}
}

// checkUser checks that config belongs to alice, who has no permissions.
func checkUser(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user := me.Status.UserInfo
	if user.Username != "alice" || !slices.Contains(user.Groups, "dev") || !slices.Contains(user.Groups, "ops") {
		t.Errorf("the user is %s of %q", user.Username, user.Groups)
	}
	_, err = client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("alice lists secrets without a binding: %v", err)
	}
}

func TestUserErrors(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	if _, err := server.User(""); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("a user without a name: %v", err)
	}
	none := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.NoOwnClients = true })
	if _, err := none.User("alice"); err == nil || !strings.Contains(err.Error(), "accepts no client certificates") {
		t.Errorf("a server without client certificates: %v", err)
	}
}

// TestKubectl checks which program a command of kubectl runs, and with which credentials.
func TestKubectl(t *testing.T) {
	server := testserver.Start(t)
	alice, err := server.User("alice")
	if err != nil {
		t.Fatal(err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell to stand for kubectl")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if err := server.Kubectl("get", "pods").Run(); err == nil ||
		!strings.Contains(err.Error(), "bowsprit") || !strings.Contains(err.Error(), "install one of them") {
		t.Errorf("without a program: %v", err)
	}
	for _, name := range []string{"bowsprit", "kubectl"} {
		script := "#!" + shell + "\necho " + name + ": $* with $KUBECONFIG\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"bowsprit": "bowsprit: kubectl get pods", "kubectl": "kubectl: get pods"}[name]
		for file, cmd := range map[string]*exec.Cmd{
			server.Kubeconfig(): server.Kubectl("get", "pods"), alice.Kubeconfig(): alice.Kubectl("get", "pods"),
		} {
			if out, err := cmd.Output(); err != nil || string(out) != want+" with "+file+"\n" {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		}
	}
}
