// Command argo runs the controller of Workflows alone: the command that the module publishes also elects a leader, and
// serves metrics and its health on fixed ports of every address.
package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"

	workflows "github.com/argoproj/argo-workflows/v4/pkg/client/clientset/versioned"
	"github.com/argoproj/argo-workflows/v4/util/logging"
	"github.com/argoproj/argo-workflows/v4/workflow/controller"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "whose rights the controller has")
	namespace := flag.String("namespace", "default", "where its ConfigMap is")
	configured := flag.String("configmap", "workflow-controller-configmap", "its ConfigMap")
	flag.Parse()
	told := logging.WithLogger(context.Background(), logging.NewSlogLogger(logging.Info, logging.JSON))
	ctx, stop := signal.NotifyContext(told, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *configured); err != nil {
		logging.RequireLoggerFromContext(ctx).WithError(err).WithFatal().Error(ctx, "the controller of Workflows ends")
	}
}

func run(ctx context.Context, kubeconfig, namespace, configured string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 2000
	client, own := kubernetes.NewForConfigOrDie(config), workflows.NewForConfigOrDie(config)
	// No pod of its image runs on nodes that are pretended.
	image, pull := "argoexec", "IfNotPresent"
	found, err := controller.NewWorkflowController(
		ctx, config, client, own, namespace, "", image, pull, "text", configured, false)
	if err != nil {
		return err
	}
	found.Run(ctx, 2, 1, 1, 1, 1)
	return nil
}
