export const STYLES = `
:root{--ink:#1d2521;--muted:#66716b;--line:#dfe5e1;--accent:#1f6f4a;--paper:#fff;--ground:#f5f7f5}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
a{color:inherit;text-decoration:none}a:hover{text-decoration:underline}
ul{list-style:none;margin:0;padding:0}
header.site{display:flex;flex-wrap:wrap;gap:.8rem 1.6rem;align-items:center;padding:.9rem 1.6rem;background:var(--paper);border-bottom:1px solid var(--line)}
.logo{font-weight:700;font-size:1.2rem;color:var(--accent)}
header.site nav ul{display:flex;flex-wrap:wrap;gap:1.1rem}
header.site form{margin-left:auto}
input[type=search],select{padding:.4rem .7rem;border:1px solid var(--line);border-radius:6px;background:var(--paper);font:inherit}
.layout{display:grid;grid-template-columns:230px 1fr;gap:1.6rem;max-width:1400px;margin:0 auto;padding:1.6rem}
.facets fieldset{border:0;border-bottom:1px solid var(--line);margin:0 0 1rem;padding:0 0 1rem}
.facets legend{font-weight:600;padding:0;margin-bottom:.4rem}
.facets label{display:flex;gap:.5rem;align-items:center}
.count{margin-left:auto;color:var(--muted);font-size:.85em}
.toolbar{display:flex;flex-wrap:wrap;gap:1rem;align-items:baseline;margin-bottom:1rem}
.toolbar h1{margin:0;font-size:1.5rem}.toolbar p{margin:0;color:var(--muted)}.toolbar label{margin-left:auto}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(215px,1fr));gap:1.1rem}
.card{position:relative;height:100%;display:flex;flex-direction:column;gap:.35rem;padding:.8rem;background:var(--paper);border:1px solid var(--line);border-radius:10px}
.card p,.card h3{margin:0}.card h3{font-size:1rem}
.picture{height:150px;border-radius:7px;display:grid;place-items:center;color:#fffc;font-weight:600}
.badges{position:absolute;top:1.2rem;left:1.2rem;display:flex;flex-wrap:wrap;gap:.3rem}
.badge{background:var(--ink);color:#fff;border-radius:4px;padding:0 .4rem;font-size:.75rem}
.brand,small,s{color:var(--muted);font-size:.85rem}
.rating i{font-style:normal;color:var(--line)}.rating i.full{color:#e0a100}
.price{font-weight:700}.amount{font-size:1.2rem}.amount .fraction{font-size:.7em;vertical-align:super}.amount .decimal{display:none}
.price{display:flex;gap:.5rem;align-items:baseline}.reduced .amount,.discount{color:#b3261e}
.swatches{display:flex;gap:.3rem}.swatches li{width:14px;height:14px;border-radius:50%}
.stock{color:var(--accent);font-size:.9rem}.stock.low{color:#a35b00}.stock.none{color:var(--muted)}
.stock small{display:block}
.card form{margin-top:auto;padding-top:.4rem;display:flex;gap:.4rem}
button{flex:1;padding:.45rem;border:0;border-radius:6px;background:var(--accent);color:#fff;font:inherit;cursor:pointer}
button:disabled{background:var(--line);color:var(--muted);cursor:default}
footer.site{display:flex;flex-wrap:wrap;gap:1rem 4rem;padding:2rem 1.6rem;border-top:1px solid var(--line);background:var(--paper)}
footer.site h2{font-size:1rem;margin:0 0 .4rem}footer.site p{flex-basis:100%;color:var(--muted)}
@media(max-width:760px){.layout{grid-template-columns:1fr}.facets{display:none}}
`;
