-- What other parts of this process know for the page of metrics: `peers_known()`, in a pod that has peers, and how many
-- requests of peers it has taken.
return { handed_over = 0 }
