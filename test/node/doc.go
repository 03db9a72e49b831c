// Package node runs Kubernetes' own programs against bowsprit, unmodified and as their own users: kube-scheduler,
// kube-controller-manager, kubelet. They are built in the module programs, because k8s.io/kubernetes brings some 200
// modules in its own versions. "make test" excludes this package, because linking the programs takes minutes: see "make
// node".
//
// TestBench measures a control plane with a node, and TestBenchStreams the traffic to a pod and back: "make
// bench-node". TestConformance runs Kubernetes' conformance tests and compares with kube-apiserver: "make
// conformance-e2e".
//
// TestMain builds the programs. NODE_BINARIES names a directory with built programs; TestMain adds the missing ones.
package node
