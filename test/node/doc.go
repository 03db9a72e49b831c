// Package node runs Kubernetes' own programs against bowsprit, unmodified and under their own users: kube-scheduler,
// kube-controller-manager, kubelet. They are built in the module programs, because k8s.io/kubernetes brings some 200
// modules in versions of its own. None of it is in "make test", because linking the programs takes minutes: see "make
// node".
//
// TestBench measures a control plane with a node, TestBenchStreams what travels to a pod and back. "make bench-node"
// alone runs them. TestConformance runs Kubernetes' conformance tests beside kube-apiserver: "make conformance-e2e".
//
// TestMain builds the programs. NODE_BINARIES names a directory that has them already; those it lacks are built into
// it.
package node
