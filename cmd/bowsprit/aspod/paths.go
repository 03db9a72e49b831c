package aspod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Without a mount namespace the files of a pod are below a directory, and the program finds them by its environment.

// rootVariable names that directory for the program.
const rootVariable = "BOWSPRIT_POD_ROOT"

// rootPattern is the pattern of the directory's name.
const rootPattern = "bowsprit-pod-"

// below makes a directory for the files, in memory if there is such a file system. remove removes it. A second process
// removes it if this one is killed.
func below() (r root, remove func(), err error) {
	parent := ""
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), memoryDir} {
		if dir != "" && inMemory(dir) {
			parent = dir
			break
		}
	}
	dir, err := os.MkdirTemp(parent, rootPattern) // mode 0700
	if err != nil {
		return root{}, nil, err
	}
	stop, err := startGuard(dir)
	if err != nil {
		return root{}, nil, errors.Join(err, os.RemoveAll(dir))
	}
	r = root{dir: dir, prepare: func(path string, _ bool) error {
		return os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700)
	}}
	return r, stop, nil
}

// startGuard starts a process that removes dir when this process ends or calls stop, which waits for it.
func startGuard(dir string) (stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "run")
	cmd.Env = append(os.Environ(), stageVariable+"="+guardStage+dir)
	cmd.SysProcAttr = ownGroup() // Ctrl-C does not reach it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		_ = cmd.Wait() // its failure leaves the directory, which the caller cannot help
	}, nil
}

// guardStage is the beginning of the stage of a guard, before the directory.
const guardStage = "guard:"

// guarding reports whether this process is a guard.
func guarding() bool { return strings.HasPrefix(stage(), guardStage) }

// guard is the work of a guard.
func guard() {
	dir := strings.TrimPrefix(stage(), guardStage)
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the other process
	if strings.HasPrefix(filepath.Base(dir), rootPattern) {
		_ = os.RemoveAll(dir)
	}
}

// writeKubeconfig writes a kubeconfig with the files of the ServiceAccount, for programs that do not find them at the
// usual path. It follows the token.
func (p *pod) writeKubeconfig(r root) (file string, err error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["pod"] = &clientcmdapi.Cluster{
		Server: "https://" + p.address(), CertificateAuthority: r.at(accountDir + "/ca.crt"),
	}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: r.at(accountDir + "/token")}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "pod", AuthInfo: "pod", Namespace: p.namespace}
	config.CurrentContext = "pod"
	file = filepath.Join(r.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("kubeconfig of the program: %w", err)
	}
	return file, os.Chmod(file, 0o600)
}
