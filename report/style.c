/* SPDX-License-Identifier: Apache-2.0
 * The style sheet as text. The classes of the drawings are a for the baseline (blue, solid), b for
 * the test arm (orange, dashed), n for noise (grey) and t for a run that differs by rounding alone
 * (purple, dotted). */
#include "report/style.h"

static const char *const colours[] = {
    ":root{color-scheme:light dark;--page:#fff;--ink:#1a1d21;--soft:#575e67;--rule:#d5d9de;",
    "--panel:#f5f6f8;--a:#0b5394;--b:#a8440a;--noise:#7b8794;--hot:#5b2a86;--warm:#a58cc4;",
    "--cool:#e8e9ee;--warn:#7a4b00;--good:#17633a}\n",
    "@media (prefers-color-scheme:dark){:root{--page:#14171b;--ink:#e6e8eb;--soft:#a3abb5;",
    "--rule:#353b43;--panel:#1d2126;--a:#74b2f2;--b:#f2a365;--noise:#8b95a1;--hot:#cba8f5;",
    "--warm:#7f63a6;--cool:#2a2f36;--warn:#f0c46c;--good:#7fd3a0}}\n",
};

static const char *const text_rules[] = {
    "*{box-sizing:border-box}\n",
    "html{-webkit-text-size-adjust:100%;text-size-adjust:100%}\n",
    "body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.55 Charter,",
    "\"Bitstream Charter\",\"Iowan Old Style\",Georgia,Cambria,\"Times New Roman\",serif}\n",
    "main,footer{max-width:68rem;margin:0 auto;padding:0 1.25rem}\n",
    "header{padding-top:2rem}\n",
    "header p,section>p,.warning,footer p{max-width:46rem}\n",
    "h1,h2,h3,nav,table,.legend,.badge,.kicker,.note,.none,.warning,summary,dl,svg,footer",
    "{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,",
    "sans-serif}\n",
    "h1{font-size:1.75rem;line-height:1.2;margin:0 0 .6rem;overflow-wrap:anywhere}\n",
    "h2{font-size:1.2rem;margin:0 0 .75rem;padding-top:1.4rem;border-top:1px solid var(--rule)}\n",
    "h3{font-size:.95rem;margin:0 0 .15rem}\n",
    "section{margin:2rem 0 0}p,h2,h3,dt,summary,.legend span{overflow-wrap:anywhere;min-width:0}\n",
    "a{color:var(--a)}\n",
    "code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",",
    "monospace;font-size:.82rem}\n",
    "code{overflow-wrap:anywhere}\n",
    "pre{background:var(--panel);border:1px solid var(--rule);border-radius:4px;padding:.7rem ",
    ".9rem;margin:.5rem 0 1rem;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.45}\n",
    ".kicker{font-size:.78rem;letter-spacing:.08em;text-transform:uppercase;color:var(--soft);",
    "margin:0 0 .3rem}\n",
    ".badge{display:inline-block;margin:0 0 .8rem;padding:.15rem .7rem;border:1.5px solid;",
    "border-radius:1rem;font-weight:600;font-size:.9rem}\n",
    ".v0,.v4{color:var(--warn)}.v1{color:var(--good)}.v2{color:var(--a)}.v3{color:var(--b)}\n",
    ".note{font-size:.84rem;color:var(--soft);margin:.35rem 0}\n",
    ".none{color:var(--soft);font-size:.92rem}\n",
    ".warning{border-left:4px solid var(--warn);background:var(--panel);padding:.6rem .9rem;",
    "font-size:.92rem}\n",
    ".lead{font-size:1.12rem;line-height:1.5;max-width:50rem!important}\n",
    "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;",
    "margin:1rem 0;font-size:.88rem}\n",
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1rem;margin:.5rem ",
    "0 1rem;font-size:.92rem}\n",
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}dd span{display:block}\n",
    "summary{cursor:pointer;font-size:.9rem;padding:.3rem 0;color:var(--a)}\n",
    "footer{margin-top:3rem;padding-bottom:2.5rem;font-size:.84rem;color:var(--soft)}\n",
};

static const char *const table_rules[] = {
    ".scroll{overflow-x:auto;max-width:100%;margin:.5rem 0 1rem}\n",
    "table{border-collapse:collapse;font-size:.84rem;line-height:1.35;",
    "font-variant-numeric:tabular-nums}\n",
    "caption{text-align:left;font-weight:600;font-size:.95rem;padding:0 0 .3rem}\n",
    "th,td{text-align:left;vertical-align:top;padding:.28rem .6rem;",
    "border-bottom:1px solid var(--rule)}\n",
    "thead th{color:var(--soft);font-weight:600;vertical-align:bottom}\n",
    "tbody th{font-weight:500}\n",
    ".r{text-align:right;white-space:nowrap}.n{white-space:nowrap}\n",
    ".w{overflow-wrap:anywhere;min-width:9rem}.heat .w{min-width:0}\n",
    ".wide{width:100%}\n",
    ".a{color:var(--a)}.b{color:var(--b)}\n",
    "tr.x td,tr.x th{background:var(--panel)}\n",
    ".heat{width:100%;table-layout:fixed}\n",
    ".heat th:first-child{width:44%}.heat .f{width:4.2rem}\n",
    ".heat td,.heat th{padding:.12rem .4rem .12rem 0;vertical-align:middle}\n",
    ".heat tbody th{font-size:.78rem}\n",
    ".strip{display:block;width:100%;height:.95rem}\n",
    ".s0{fill:var(--cool)}.s1{fill:var(--warm)}.s2{fill:var(--hot)}\n",
    ".swatch{width:1rem;height:.8rem;vertical-align:-.08rem}\n",
    ".bar{display:block;width:18rem;height:.95rem}\n",
    ".bar .p{fill:var(--a)}.bar .m{fill:var(--b)}.bar line{stroke:var(--ink);stroke-width:2;",
    "vector-effect:non-scaling-stroke}\n",
    ".bar .k{stroke:var(--page);stroke-width:1.5;vector-effect:non-scaling-stroke}\n",
    ".k0{fill:var(--a)}.k1{fill:var(--b)}.k2{fill:var(--hot)}.k3{fill:var(--noise)}",
    ".k4{fill:var(--warm)}\n",
    ".halo,.whisker{fill:none;stroke:var(--page);stroke-width:4;",
    "vector-effect:non-scaling-stroke}.whisker{stroke:var(--ink);stroke-width:1.6}\n",
};

static const char *const drawing_rules[] = {
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));",
    "gap:1.6rem 2rem}\n",
    "figure{margin:0;min-width:0}\n",
    "figcaption p{margin:0 0 .3rem;font-size:.86rem;color:var(--soft);line-height:1.4}\n",
    ".legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:.2rem 0;font-size:.84rem}\n",
    ".key{width:2.1rem;height:.62rem}\n",
    ".plot{display:block;width:100%;height:auto}\n",
    "svg text{font-size:13px;fill:var(--soft)}\n",
    ".grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}\n",
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n",
    ".line.a{stroke:var(--a);stroke-width:3}.line.b{stroke:var(--b);stroke-dasharray:6 4}\n",
    ".line.n{stroke:var(--ink);stroke-width:2}\n",
    ".line.fine{stroke-width:1.4}.line.a.fine{stroke-width:2}\n",
    ".line.thin{stroke-width:1.1}.line.a.thin{stroke-width:1.6}\n",
    ".line.b.thin{stroke-dasharray:3 3}\n",
    ".band{stroke:none;opacity:.22}.band.a{fill:var(--a)}.band.b{fill:var(--b)}\n",
    ".band.n,.noise{fill:var(--noise);opacity:.35}.lane{fill:var(--panel)}\n",
    ".dot.a{fill:var(--a)}.dot.n{fill:var(--ink)}\n",
    ".dot.b{fill:var(--page);stroke:var(--b);stroke-width:1.8}\n",
    ".zero{fill:none;stroke-width:6;stroke:var(--ink)}\n",
    ".cross{fill:none;stroke-width:1.8}.cross.a{stroke:var(--a)}.cross.b{stroke:var(--b)}\n",
    ".cross.n{stroke:var(--ink)}\n",
    ".line.t{stroke:var(--hot);stroke-width:2;stroke-dasharray:1.5 4;stroke-linecap:round}\n",
    ".dot.t{fill:var(--hot)}.zero.t{stroke:var(--hot)}.cross.t{stroke:var(--hot)}\n",
};

/* For phones and paper. On paper what is folded stays folded, and colours are as on a light
 * screen. */
static const char *const media_rules[] = {
    "@media (max-width:34rem){main,footer{padding:0 .9rem}h1{font-size:1.4rem}",
    "svg text{font-size:16.5px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}",
    "th,td{padding:.28rem .4rem}.bar{width:6rem}.heat th:first-child{width:46%}.heat "
    ".f{width:3.4rem}}\n",
    "@media print{@page{size:A4;margin:15mm 14mm}",
    ":root{color-scheme:light;--page:#fff;--ink:#000;--soft:#444;--rule:#bbb;--panel:#f5f6f8;",
    "--a:#0b5394;--b:#a8440a;--noise:#7b8794;--hot:#5b2a86;--warm:#a58cc4;--cool:#e8e9ee;",
    "--warn:#7a4b00;--good:#17633a}",
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}",
    "body{font-size:10pt;line-height:1.42}main,footer{max-width:none;padding:0}",
    "header{padding-top:0}nav{display:none}",
    "h1{font-size:17pt}h2{font-size:12.5pt;padding-top:.8rem;break-after:avoid}",
    "h3,caption{font-size:9.5pt;break-after:avoid}section{margin-top:1.1rem}",
    "table{font-size:7.4pt}th,td{padding:.14rem .3rem}thead{display:table-header-group}",
    "tr,figure,.warning,.scroll{break-inside:avoid}section>p{break-after:avoid}.scroll{overflow:"
    "visible}",
    ".figures{grid-template-columns:1fr 1fr;gap:1rem 1.2rem}svg text{font-size:15px}",
    "pre,code{font-size:7.6pt}a{color:inherit;text-decoration:none}",
    ".note,.legend,figcaption p,.none,.warning,summary{font-size:8.2pt}.lead{font-size:11pt}",
    "dl{font-size:8.6pt;gap:.12rem .8rem}.badge{font-size:9pt}.heat tbody th{font-size:6.4pt}",
    ".heat th:first-child{width:52%}.heat .f{width:2.6rem}.strip{height:.6rem}",
    "summary{color:var(--ink);list-style:none}",
    "details:not([open])>summary::after{content:\" (closed, so not on paper)\"}}\n",
};

static void write_lines(struct html *html, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        html_raw(html, lines[i]);
}

void style_write(struct html *html) {
    write_lines(html, colours, COUNT_OF(colours));
    write_lines(html, text_rules, COUNT_OF(text_rules));
    write_lines(html, table_rules, COUNT_OF(table_rules));
    write_lines(html, drawing_rules, COUNT_OF(drawing_rules));
    write_lines(html, media_rules, COUNT_OF(media_rules));
}
