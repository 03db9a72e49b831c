package node

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The images of the manifests of k8s.io/sample-apiserver.
const (
	sampleImage = "docker.io/library/kube-sample-apiserver:latest"
	etcdImage   = "registry.k8s.io/etcd:v3.6.8"
)

// TestExtensionOnNode follows Kubernetes' page "Set up an Extension API Server" on a real node: with the unchanged
// manifests of k8s.io/sample-apiserver, and that program and its etcd in the containers of their pod. A patch of the
// Deployment adds the page's certificates, which the manifests omit.
func TestExtensionOnNode(t *testing.T) {
	root := onMachine(t, needs("openssl"), program("sample-apiserver", sample), program("etcd", etcd))
	if root == "" {
		return
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-apiserver")
	list.Dir = filepath.FromSlash(sample.folder)
	module, err := list.Output()
	if err != nil {
		t.Fatalf("where the sample's manifests are: %v", err)
	}
	n := startNode(t, root, joining{})
	n.load(t, contents{
		command: []string{"etcd"}, files: map[string]string{"usr/local/bin/etcd": filepath.Join(binaries, "etcd")},
	}, etcdImage)
	n.load(t, contents{ // its Dockerfile
		entrypoint: []string{"/kube-sample-apiserver"},
		files:      map[string]string{"kube-sample-apiserver": filepath.Join(binaries, "sample-apiserver")},
	}, sampleImage)
	n.sh(t, "ln -s "+filepath.Join(strings.TrimSpace(string(module)), "artifacts")+" artifacts")
	n.sh(t, extensionSteps)
	n.sh(t, "kubectl rollout status deployment wardle-server --namespace=wardle --timeout=120s")
	n.sh(t, "kubectl wait apiservice v1alpha1.wardle.example.com --for=condition=Available --timeout=120s")

	for _, s := range []struct{ line, want string }{
		{"kubectl get flunders 2>&1 | grep -v ^Warning", "No resources found in default namespace."}, // the page's last step
		{"kubectl create -f artifacts/flunders/01-flunder.yaml", "flunder.wardle.example.com/my-first-flunder created"},
		{"kubectl get flunders -o name", "flunder.wardle.example.com/my-first-flunder"},
		{"kubectl label flunder my-first-flunder color=red", "flunder.wardle.example.com/my-first-flunder labeled"},
		{"kubectl get flunders --selector=color=red -o name --as=jane 2>&1 | grep -v ^Warning", "Error from server " +
			`(Forbidden): flunders.wardle.example.com is forbidden: User "jane" cannot list resource "flunders" in API ` +
			`group "wardle.example.com" in the namespace "default"`},
	} {
		if got := n.sh(t, s.line); got != s.want {
			t.Errorf("%s: %q, want %q", s.line, got, s.want)
		}
	}

	// While its pod is absent, only its kind is not served. The new pod has a new etcd.
	n.sh(t, "kubectl scale deployment wardle-server --namespace=wardle --replicas=0")
	n.sh(t, "kubectl wait apiservice v1alpha1.wardle.example.com --for=condition=Available=False --timeout=120s")
	n.sh(t, "kubectl get namespace default")
	n.sh(t, "kubectl scale deployment wardle-server --namespace=wardle --replicas=1")
	n.sh(t, "kubectl wait apiservice v1alpha1.wardle.example.com --for=condition=Available --timeout=120s")
	await(t, func(context.Context) string {
		return n.sh(t, "kubectl get flunders -o name 2>&1 | grep -v ^Warning || :")
	})
	n.sh(t, "kubectl delete -f artifacts/example/apiservice.yaml && kubectl delete namespace wardle --wait --timeout=120s")
}

// extensionSteps are steps 3 to 14 of the page.
const extensionSteps = `
kubectl create -f artifacts/example/ns.yaml
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 1 -subj /CN=wardle-ca 2> openssl.log
openssl req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj /CN=api.wardle.svc 2> openssl.log
printf 'subjectAltName=DNS:api.wardle.svc' > names
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile names -out tls.crt 2> openssl.log
kubectl create secret tls wardle-certs --cert=tls.crt --key=tls.key -n wardle
kubectl create -f artifacts/example/sa.yaml -n wardle
kubectl create -f artifacts/example/deployment.yaml -n wardle
kubectl patch deployment wardle-server -n wardle --type=json -p '[
  {"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "certs", "secret": {"secretName": "wardle-certs"}}]},
  {"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts", "value": [{"name": "certs", "mountPath": "/certs"}]},
  {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--tls-cert-file=/certs/tls.crt"},
  {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--tls-private-key-file=/certs/tls.key"}]'
kubectl create -f artifacts/example/rbac.yaml
kubectl create -f artifacts/example/rbac-bind.yaml
kubectl create clusterrole mutating-policies --verb=get,watch,list \
  --resource=mutatingadmissionpolicies.admissionregistration.k8s.io,mutatingadmissionpolicybindings.admissionregistration.k8s.io
kubectl create clusterrolebinding mutating-policies --clusterrole=mutating-policies --serviceaccount=wardle:apiserver
kubectl create -f artifacts/example/auth-delegator.yaml -n kube-system
kubectl create -f artifacts/example/auth-reader.yaml -n kube-system
kubectl create -f artifacts/example/service.yaml -n wardle
sed -e '/insecureSkipTLSVerify/d' -e "s/^spec:/spec:\n  caBundle: $(base64 -w 0 ca.crt)/" artifacts/example/apiservice.yaml | \
  kubectl create -f -
`
