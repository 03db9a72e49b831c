package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/testserver"
)

// shop is a namespace as an assistant finds it: pods, and the objects around them. Each template is made for the
// numbers from 0 to its count, which stand for %[1]d. %[2]d is the number of a node.
var shop = []struct {
	count    int
	resource schema.GroupVersionResource
	template string
}{
	{60, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, `
apiVersion: v1
kind: Pod
metadata: {name: web-%[1]d, labels: {app: web, pod: "%[1]d", team: shop, track: canary}}
spec:
  nodeName: node-%[2]d
  containers:
  - name: web
    image: registry.example.com/shop/web:1.2.3
    args: [--listen=:8080, --database=db-%[1]d.shop.svc, --cache=/var/cache]
    env: [{name: MODE, value: production}, {name: LOG, value: json}]
    ports: [{containerPort: 8080, name: http}, {containerPort: 9090, name: metrics}]
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
    readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
    volumeMounts: [{name: cache, mountPath: /var/cache}]
  volumes: [{name: cache, emptyDir: {}}]
`},
	{30, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, labels: {app: web-%[1]d, team: shop}}
spec:
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      containers:
      - name: web
        image: registry.example.com/shop/web:1.2.3
        args: [--listen=:8080, --database=db-%[1]d.shop.svc]
        resources: {requests: {cpu: 100m, memory: 128Mi}}
`},
	{30, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings-%[1]d}
data: {settings.ini: "mode = production\nlevel = info\nurl = https://shop-%[1]d.example.com/api/v1\ntimeout = 30s\nretries = 5\n"}
`},
	{30, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, `
apiVersion: v1
kind: Secret
metadata: {name: login-%[1]d}
stringData: {password: marker-secret-of-a-shop-%[1]d}
`},
	{30, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}, `
apiVersion: example.com/v1
kind: Database
metadata: {name: db-%[1]d, labels: {team: shop}}
spec: {host: db-%[1]d.shop.svc.cluster.local, password: marker-sensitive-of-a-shop-%[1]d}
`},
	{50, schema.GroupVersionResource{Version: "v1", Resource: "events"}, `
apiVersion: v1
kind: Event
metadata: {name: web-%[1]d.1}
type: Warning
reason: BackOff
message: Back-off restarting failed container web in pod web-%[1]d
count: %[1]d
lastTimestamp: "2026-01-02T03:04:05Z"
involvedObject: {apiVersion: v1, kind: Pod, name: web-%[1]d, namespace: shop}
source: {component: kubelet, host: node-%[1]d}
`},
}

// databases is the definition of a kind with a sensitive field.
const databases = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: databases, singular: database, kind: Database}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host: {type: string}
              password: {type: string, x-kubernetes-sensitive-data: true}
`

// nodes is the number of nodes. The pods of missing nodes would be deleted.
const nodes = 5

// newShop starts a server with a shop, or with a part of it.
func newShop(t *testing.T, part int) *testserver.Server {
	t.Helper()
	server := testserver.Start(t)
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(databases), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Install(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	for _, name := range []string{"shop", "old"} {
		create(t, client.Resource(namespaces), "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	for i := range nodes {
		create(t, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}),
			fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: node-%d}}", i))
	}
	for _, kind := range shop {
		for i := range kind.count / part {
			create(t, client.Resource(kind.resource).Namespace("shop"), fmt.Sprintf(kind.template, i, i%nodes))
		}
	}
	old := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}).
		Namespace("old")
	create(t, old, "{apiVersion: example.com/v1, kind: Database, metadata: {name: stuck, finalizers: [example.com/backup]}}")
	if err := old.Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return server
}

func create(t *testing.T, client dynamic.ResourceInterface, text string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// assistantOf connects the SDK's client with the tools for a user.
func assistantOf(t *testing.T, config *rest.Config, options assistant.Options) *mcp.ClientSession {
	t.Helper()
	tools, err := assistant.New(&connect.Server{Config: config, Namespace: "shop"}, options)
	if err != nil {
		t.Fatal(err)
	}
	to, from := mcp.NewInMemoryTransports()
	ctx := context.WithoutCancel(t.Context())
	served, err := tools.Server().Connect(ctx, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	return connected(t, ctx, to, func() { _ = served.Wait() })
}

// connected connects the SDK's client. after is called when the client is closed.
func connected(t *testing.T, ctx context.Context, to mcp.Transport, after func()) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		after()
	})
	return session
}

// ask calls a tool.
func ask(t *testing.T, s *mcp.ClientSession, tool string, args any) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// raw returns the response to a GET request, or an error.
func raw(t *testing.T, config *rest.Config, path string) ([]byte, error) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.RESTClient().Get().RequestURI(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
}

// named matches the plan and the page that an answer names.
var named = regexp.MustCompile(`(?m)^(?:plan: (\S+),|next: call next_page with page=(\S+)$)`)

// hidden matches the passwords of the shop, plain and in base64.
var hidden = regexp.MustCompile(`marker-|bWFya2Vy`)

// TestAssistantTasks executes tasks of an assistant without a model. The answers to each have at most a tenth of the
// bytes of raw lists, and no values of Secrets and sensitive fields.
func TestAssistantTasks(t *testing.T) {
	t.Parallel()
	server := newShop(t, 1)
	session := assistantOf(t, server.RESTConfig(), assistant.Options{AllowApply: true, AllowDelete: true})
	tasks := strings.Split(read(t, filepath.Join("assistant", "testdata", "tasks.txt")), "\ntask: ")[1:]
	if len(tasks) < 30 {
		t.Fatalf("%d tasks", len(tasks))
	}
	sum, sumRaw := 0, 0
	for _, task := range tasks {
		lines := strings.Split(strings.TrimSpace(task), "\n")
		answers, last, size := "", "", 0
		names := strings.NewReplacer()
		for _, line := range lines[1:] {
			word, rest, _ := strings.Cut(line, ": ")
			switch word {
			case "call":
				tool, text, _ := strings.Cut(names.Replace(rest), " ")
				var args any
				if err := json.Unmarshal([]byte(text), &args); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				var failed bool
				if last, failed = ask(t, session, tool, args); failed {
					t.Errorf("%s: %s", lines[0], last)
				}
				answers += last
				if m := named.FindStringSubmatch(last); m != nil {
					names = strings.NewReplacer("$plan", m[1], "$page", m[2])
				}
			case "raw":
				for path := range strings.FieldsSeq(rest) {
					data, err := raw(t, server.RESTConfig(), path)
					if err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					size += len(data)
				}
			case "want":
				if !regexp.MustCompile("(?m)" + rest).MatchString(last) {
					t.Errorf("%s: the answer lacks %s:\n%s", lines[0], rest, last)
				}
			default:
				t.Fatalf("an unknown line: %s", line)
			}
		}
		if len(answers)*10 > size || hidden.MatchString(answers) {
			t.Errorf("%s: the answers have %d bytes, the raw lists %d:\n%s", lines[0], len(answers), size, answers)
		}
		sum, sumRaw = sum+len(answers), sumRaw+size
	}
	t.Logf("%d tasks: %d bytes of answers, %d bytes of raw lists: 1/%d", len(tasks), sum, sumRaw, sumRaw/sum)
}

// TestAssistantRights compares the answers for users of different rights with the server's answers to the same users:
// the tools fail where the server refuses a request, and no text is in an answer that the server does not show to the
// user.
func TestAssistantRights(t *testing.T) {
	t.Parallel()
	server := newShop(t, 10)
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	bindings := roles.GroupVersion().WithResource("rolebindings")
	resources := []string{"pods", "configmaps", "secrets", "databases", "databases/sensitive", "events"}
	rng := rand.New(rand.NewPCG(1, 2))
	marker := regexp.MustCompile(`marker-[a-z0-9-]+|bWFya2Vy\w+|db-\d+\.shop|shop-\d+\.example`)
	for n := range 20 {
		name := fmt.Sprintf("user-%d", n)
		granted := slices.DeleteFunc(slices.Clone(resources), func(string) bool { return rng.IntN(2) == 0 })
		verbs := [][]string{{"get"}, {"list"}, {"get", "list"}}[rng.IntN(3)]
		rules, err := json.Marshal(map[string]any{
			"apiGroups": []string{"", "example.com"}, "resources": granted, "verbs": verbs})
		if err != nil {
			t.Fatal(err)
		}
		if len(granted) > 0 {
			create(t, client.Resource(roles).Namespace("shop"), fmt.Sprintf(
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s}, rules: [%s]}", name, rules))
			create(t, client.Resource(bindings).Namespace("shop"), fmt.Sprintf(
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %[1]s}, subjects: [{kind: User, "+
					"name: %[1]s}], roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}}", name))
		}
		config := server.RESTConfig()
		config.Impersonate = rest.ImpersonationConfig{UserName: name}
		session := assistantOf(t, config, assistant.Options{ShowSecrets: n%2 == 0})
		answers, visible := "", ""
		for path, calls := range map[string][]string{
			"/api/v1/namespaces/shop/pods":                        {`list {"kind": "pods"}`},
			"/api/v1/pods":                                        {`list {"kind": "pods", "allNamespaces": true}`},
			"/api/v1/namespaces/shop/pods/web-1":                  {`get {"kind": "pods", "name": "web-1"}`},
			"/api/v1/namespaces/shop/secrets":                     {`list {"kind": "secrets"}`},
			"/api/v1/namespaces/shop/secrets/login-1":             {`get {"kind": "secrets", "name": "login-1"}`},
			"/api/v1/namespaces/shop/configmaps":                  {`list {"kind": "configmaps"}`},
			"/api/v1/namespaces/shop/configmaps/settings-1":       {`get {"kind": "configmaps", "name": "settings-1"}`},
			"/apis/example.com/v1/namespaces/shop/databases":      {`list {"kind": "databases"}`},
			"/apis/example.com/v1/namespaces/shop/databases/db-1": {`get {"kind": "databases", "name": "db-1"}`},
			"/api/v1/namespaces/shop/events":                      {`events {"kind": "pods"}`},
		} {
			data, err := raw(t, config, path)
			visible += string(data)
			for _, call := range calls {
				tool, args, _ := strings.Cut(call, " ")
				got, failed := ask(t, session, tool, json.RawMessage(args))
				if failed != (err != nil) {
					t.Errorf("%s (%s %s): the server's error is %v, the answer is\n%s", name, verbs, granted, err, got)
				}
				answers += got
			}
		}
		for _, call := range []string{
			`why_denied {"verb": "get", "resource": "secrets"}`, `why_stuck {"kind": "databases", "name": "db-1"}`,
			`plan {"manifests": "{apiVersion: example.com/v1, kind: Database, metadata: {name: db-1}, spec: {password: x}}"}`,
			`plan {"manifests": "{apiVersion: v1, kind: Secret, metadata: {name: login-1}, stringData: {password: x}}"}`,
			`plan_delete {"objects": [{"kind": "ns", "name": "shop"}]}`,
		} {
			tool, args, _ := strings.Cut(call, " ")
			got, _ := ask(t, session, tool, json.RawMessage(args))
			answers += got
		}
		for _, found := range marker.FindAllString(answers, -1) {
			if !strings.Contains(visible, found) {
				t.Errorf("%s (%s %s): %s is not visible to the user", name, verbs, granted, found)
			}
		}
	}
}

// TestAssistantCommand runs "bowsprit mcp" as a client does: as a process that ends with its input.
func TestAssistantCommand(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	cmd := command(t, "mcp", "--kubeconfig="+server.Kubeconfig())
	session := connected(t, context.WithoutCancel(t.Context()), &mcp.CommandTransport{Command: cmd}, func() {
		if !cmd.ProcessState.Success() {
			t.Errorf("the process ended with %s", cmd.ProcessState)
		}
	})
	got, failed := ask(t, session, "list", map[string]any{"kind": "ns"})
	if failed || !strings.Contains(got, "| kube-system\t") {
		t.Error(got)
	}
	if got := session.InitializeResult(); got.ServerInfo.Name != "bowsprit" || got.Capabilities.Tools == nil {
		t.Errorf("%+v", got)
	}
}
